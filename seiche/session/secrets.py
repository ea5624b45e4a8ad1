"""Secrets: texts that are used by name, so that neither definitions nor those who read them have to hold them.

A secret is given to functions of the user's own as an argument, `f(column, SECRET name)`, and nothing else shows it.
The one backend is `meta`: the text is kept in the metadata database, in clear, and is as safe as that is.
"""

from __future__ import annotations

from dataclasses import replace

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import SECRET_TEXT, ObjectKind
from seiche.errors import DependentObjects, DuplicateObject, FeatureNotSupported, InvalidParameter, nearest
from seiche.session.definitions import Definitions
from seiche.sql import statements as ast

_BACKEND = "backend"
_META = "meta"


def create_secret(definitions: Definitions, statement: ast.CreateSecret) -> str | None:
    """Creates a secret; a notice when it was there already."""
    _check(statement.options, must_say=True)
    name, schema = definitions.place(statement.name)
    if definitions.catalog.try_find((schema, name), kinds=(ObjectKind.SECRET,)) is not None:
        if statement.if_not_exists:
            return f'secret "{name}" already exists, skipping'
        raise DuplicateObject(
            f'secret "{name}" already exists',
            detail=f"In the catalog: secret named {name} already exists.",
            hint="Drop it first, or give it another text with ALTER SECRET.",
        )
    kept = {_BACKEND: _META, SECRET_TEXT: statement.text}
    shown = f"CREATE SECRET {statement.name} WITH ({_BACKEND} = '{_META}') AS '…'"
    item = definitions.new_object(ObjectKind.SECRET, schema, name, shown, (), None, kept)
    definitions.change(lambda catalog: catalog.with_objects(item))
    return None


def alter_secret(definitions: Definitions, statement: ast.AlterSecret) -> None:
    """Another text from here on. What follows it all the time would go on with the old one, and holds it back."""
    _check(statement.options, must_say=False)
    path = definitions.variables.search_path
    kinds = (ObjectKind.SECRET,)
    found = definitions.catalog.find(statement.name.parts, search_path=path, kinds=kinds, action="ALTER")

    def change(catalog: Catalog) -> Catalog:
        item = catalog.get(found.id)
        users = [each for each in catalog.dependants(item.id) if each.relation is not None]
        if users:
            raise DependentObjects(
                f"{item} cannot be changed because {users[0]} was made with it",
                detail="Its rows would have to be made anew.",
                hint="Create another secret for a new view, and drop the old ones.",
            )
        return catalog.with_objects(replace(item, properties={**item.properties, SECRET_TEXT: statement.text}))

    definitions.change(change)


def _check(options: ast.Options, *, must_say: bool) -> None:
    for name, _ in options:
        if name != _BACKEND:
            raise InvalidParameter(
                f'option "{name}" of a secret is not known', hint=nearest(name, (_BACKEND,)) or f"{_BACKEND} is."
            )
    backend = dict(options).get(_BACKEND)
    if backend is None:
        if must_say:
            raise InvalidParameter("secret has no backend", hint=f"Write WITH ({_BACKEND} = '{_META}').")
        return
    if backend.lower() != _META:
        raise FeatureNotSupported(
            f'secret backend "{backend}" is not supported', hint=f"'{_META}' keeps it in the metadata database."
        )
