"""CREATE FUNCTION and CREATE AGGREGATE: a user's function in SQL or in Python."""

from __future__ import annotations

from dataclasses import replace

from seiche.catalog.objects import ObjectKind
from seiche.errors import DependentObjects, DuplicateObject
from seiche.model import Column, ObjectId
from seiche.session import python_functions
from seiche.session.definitions import Definitions
from seiche.session.names import CatalogNames, user_function
from seiche.sql import statements as ast
from seiche.sql.bind import Settings, check_function


def create_function(definitions: Definitions, statement: ast.CreateFunction, text: str) -> str | None:
    """Registers a function once its body makes sense over parameters of its types."""
    database = definitions.database
    name, schema = definitions.place(statement.name)
    existing = database.catalog.try_find((schema, name), kinds=(ObjectKind.FUNCTION,))
    if existing is not None and statement.if_not_exists:
        return f'function "{name}" already exists, skipping'
    if existing is not None and not statement.or_replace:
        types = ",".join(str(column.type) for column in existing.columns[:-1])  # the last one is what it returns
        raise DuplicateObject(
            f'function "{name}" already exists',
            detail=f"In the catalog: function named {name}({types}) already exists.",
            hint="Drop it first, replace it with CREATE OR REPLACE, or choose another name.",
        )
    names = CatalogNames(database.catalog, definitions.variables.search_path)
    function = user_function(statement)
    if function.language == "python":
        python_functions.register(database.runtime.spark, function)
    else:
        check_function(function, names, Settings(timezone="UTC", now_ms=0, strict=True))
    parameters = tuple(Column(label or "", type_) for label, type_ in function.parameters)
    signature = (*parameters, Column("", function.returns))
    properties = {"language": function.language, **({"aggregate": True} if function.aggregate else {})}
    item = definitions.new_object(ObjectKind.FUNCTION, schema, name, text, signature, None, properties)
    item = replace(item, dependencies=frozenset(ObjectId(each) for each in names.mentioned))
    if existing is not None and statement.or_replace:
        readers = [each for each in database.catalog.objects() if existing.id in each.dependencies]
        if readers:
            raise DependentObjects(
                f'function "{name}" cannot be replaced because other objects use it',
                detail=f"{readers[0]} uses it.",
                hint="Drop them first, or create the function under another name.",
            )
        item = replace(item, id=existing.id, owner=existing.owner)
    definitions.change(lambda catalog: catalog.with_objects(item))
    return None
