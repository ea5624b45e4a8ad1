"""A query over system views, from PostgreSQL's dialect to DuckDB's.

DuckDB reads nearly all of it as it is. What is rewritten here is what only PostgreSQL has: the system schemas and
functions, types that name things (`regclass` and its kin), operators by their schema, collations, array literals,
vectors that count from zero, and LIKE's backslash. Functions pass only if they are on a list: whatever else DuckDB
offers, files and settings above all, is out of reach.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from seiche.catalog.catalog import Catalog
from seiche.catalog.facts import SystemView
from seiche.catalog.system_views import SYSTEM_SCHEMAS, SYSTEM_VIEWS, try_system_view
from seiche.errors import UndefinedObject
from seiche.session.system import privileges  # noqa: F401  registers its functions
from seiche.session.system.functions import FUNCTIONS, find_function
from seiche.sql.calls import call_of
from seiche.sql.output_names import output_name
from seiche.sql.places import place_of, pointing_at

KEYWORDS_VIEW = "pg_get_keywords"

# Functions that mean the same in DuckDB, or nearly so.
_SHARED = frozenset(
    """
    abs array_agg array_append array_cat array_length array_position array_prepend array_remove array_to_string ascii
    avg bit_length bool_and bool_or ceil ceiling char_length character_length chr coalesce concat concat_ws count
    cume_dist date_part date_trunc dense_rank every exists first_value floor generate_series generate_subscripts
    greatest initcap lag last_value lead least left length lower lpad ltrim max md5 min mod now ntile nullif
    octet_length percent_rank power rank regexp_matches regexp_replace regexp_split_to_array repeat replace reverse
    right round row_number rpad rtrim sign split_part starts_with stddev string_agg string_to_array strpos substr
    substring sum to_json translate trim trunc unnest upper
    """.split()
)
_RENAMED = {
    "btrim": "trim",
    "cardinality": "len",
    "json_agg": "json_group_array",
    "jsonb_agg": "json_group_array",
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_build_array": "json_array",
    "jsonb_build_array": "json_array",
    "row_to_json": "to_json",
    "to_jsonb": "to_json",
    "array_upper": "pg_array_upper",
    "array_lower": "pg_array_lower",
    "array_ndims": "pg_array_ndims",
    "_pg_expandarray": "pg_expandarray",
    "clock_timestamp": "now",
    "statement_timestamp": "now",
    "transaction_timestamp": "now",
    "bool_and": "bool_and",
    "every": "bool_and",
}
_MANY_ROWS = frozenset({"aclexplode"})  # of our own functions
_ROW_MAKERS = frozenset({"pg_expandarray", "unnest", "generate_series", "generate_subscripts"})

_TEXT_TYPES = frozenset(
    """
    name text varchar char bpchar "char" regproc regprocedure regoper regoperator regconfig regdictionary cstring json
    jsonb xml inet cidr pg_node_tree aclitem unknown pg_lsn uuid citext information_schema.sql_identifier
    sql_identifier character_data yes_or_no nchar nvarchar string
    """.split()
)
_NAMING_TYPES = frozenset({"regclass", "regtype", "regnamespace", "regrole"})
_NUMBER_TYPES = frozenset({"oid", "xid", "cid", "xid8", "regcollation"})
VECTORS = frozenset(
    column.name
    for view in SYSTEM_VIEWS.values()
    if view.schema == "pg_catalog"
    for column in view.columns
    if column.name in ("indkey", "indcollation", "indclass", "indoption", "proargtypes", "prattrs")
)
_ARRAYS = frozenset(
    column.name for view in SYSTEM_VIEWS.values() for column in view.columns if column.type.element is not None
)
_NEVER_STORED = frozenset({"xmin", "xmax", "cmin", "cmax"})  # columns that PostgreSQL keeps of each row by itself
_ARRAY_LITERAL = re.compile(r"\{(.*)\}", re.DOTALL)
_ARRAY_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)')

_OPERATORS: dict[str, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
    "~": lambda a, b: exp.RegexpLike(this=a, expression=b),
    "!~": lambda a, b: exp.Not(this=exp.RegexpLike(this=a, expression=b)),
    "~*": lambda a, b: exp.RegexpILike(this=a, expression=b),
    "!~*": lambda a, b: exp.Not(this=exp.RegexpILike(this=a, expression=b)),
    "~~": lambda a, b: exp.Like(this=a, expression=b),
    "!~~": lambda a, b: exp.Not(this=exp.Like(this=a, expression=b)),
    "~~*": lambda a, b: exp.ILike(this=a, expression=b),
    "=": lambda a, b: exp.EQ(this=a, expression=b),
    "<>": lambda a, b: exp.NEQ(this=a, expression=b),
    "!=": lambda a, b: exp.NEQ(this=a, expression=b),
    "<": lambda a, b: exp.LT(this=a, expression=b),
    "<=": lambda a, b: exp.LTE(this=a, expression=b),
    ">": lambda a, b: exp.GT(this=a, expression=b),
    ">=": lambda a, b: exp.GTE(this=a, expression=b),
    "||": lambda a, b: exp.DPipe(this=a, expression=b, safe=True),
    "+": lambda a, b: exp.Add(this=a, expression=b),
    "-": lambda a, b: exp.Sub(this=a, expression=b),
}


class NotForUs(Exception):
    """The query has something that only the binder for Spark knows."""


@dataclass(slots=True)
class Rewritten:
    """The query's text for DuckDB, and the views it reads; `names` are the columns', None where DuckDB's will do, and
    `vectors` the places of those that PostgreSQL shows as numbers between spaces."""

    sql: str
    views: dict[str, SystemView]
    names: list[str | None]
    vectors: set[int] = field(default_factory=set)


def is_system_query(tree: exp.Expr, catalog: Catalog, search_path: Sequence[str]) -> bool:
    """Whether the query reads system views only, or nothing at all but asks about the system."""
    names = _ctes(tree)
    reads = False
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            continue  # a function in FROM
        parts = _parts(table)
        if len(parts) == 1 and parts[0] in names:
            continue
        with pointing_at(table):
            is_system = _is_system(parts, catalog, search_path)
        if not is_system:
            return False
        reads = True
    return reads or any(_asks_system(node) for node in tree.walk())


def _is_system(parts: tuple[str, ...], catalog: Catalog, search_path: Sequence[str]) -> bool:
    view = try_system_view(parts, catalog.home)
    if view is None:
        return False
    own = len(parts) == 1 and view.schema != "pg_catalog"
    return not (own and catalog.try_find(parts, search_path=search_path) is not None)


def _asks_system(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return type_name(node.args["to"]) in _NAMING_TYPES | {"oid", "regproc"}
    if isinstance(node, exp.CurrentUser | exp.SessionUser | exp.CurrentSchema | exp.CurrentCatalog):
        return True
    called = call_of(node)
    return called is not None and (called[0] == KEYWORDS_VIEW or any(name == called[0] for name, _ in FUNCTIONS))


def _ctes(tree: exp.Expr) -> set[str]:
    return {cte.alias for cte in tree.find_all(exp.CTE)}


def _parts(table: exp.Table) -> tuple[str, ...]:
    return tuple(part for part in (table.catalog, table.db, table.name) if part)


def rewrite(tree: exp.Expr) -> Rewritten:
    """The query for DuckDB. Raises NotForUs where it cannot be told."""
    return _Rewriting(tree.copy()).result()


class _Rewriting:
    def __init__(self, tree: exp.Expr) -> None:
        self._tree = tree
        self._ctes = _ctes(tree)
        self._views: dict[str, SystemView] = {}
        self._aliases: dict[str, SystemView] = {}

    def result(self) -> Rewritten:
        names, vectors = self._name_outputs()
        for table in list(self._tree.find_all(exp.Table)):
            self._table(table)
        sql = self._rewritten(self._tree).sql("duckdb")
        return Rewritten(sql, self._views, names, vectors)

    # --- names ---------------------------------------------------------------------------------------

    def _name_outputs(self) -> tuple[list[str | None], set[int]]:
        """Gives every column of a subquery the name that PostgreSQL would, and tells those of the whole query."""
        outer = self._tree
        while isinstance(outer, exp.Subquery | exp.SetOperation):
            outer = outer.this
        if isinstance(outer, exp.Select) and not outer.expressions:
            raise NotForUs
        names: list[str | None] = []
        vectors: set[int] = set()
        for select in list(self._tree.find_all(exp.Select)):
            _group_by_outputs(select)
            for projection in list(select.expressions):
                star = projection.is_star or isinstance(projection, exp.Star)
                name = None if star else _name_of(projection)
                if select is outer:
                    if projection.unalias().name in VECTORS:
                        vectors.add(len(names))
                    names.append(name)
                    self._as_shown(projection)
                if name is not None and name != "?column?" and not isinstance(projection, exp.Alias | exp.Column):
                    projection.replace(exp.alias_(projection.copy(), name, quoted=True))
        if isinstance(self._tree, exp.SetOperation):
            for select in _arms(self._tree):
                for projection in select.expressions:
                    self._as_shown(projection)
        if None in names:  # a star stands for any number of columns
            return [None] * len(names), set()
        return names, vectors

    def _as_shown(self, projection: exp.Expr) -> None:
        """A name's number is shown as the name where the query ends."""
        shown = projection.this if isinstance(projection, exp.Alias) else projection
        if isinstance(shown, exp.Cast) and type_name(shown.args["to"]) in _NAMING_TYPES:
            shown.replace(exp.Cast(this=shown.copy(), to=exp.DataType.build("text")))

    def _table(self, table: exp.Table) -> None:
        if table.args.get("rows_from"):
            raise NotForUs
        if not isinstance(table.this, exp.Identifier):
            self._table_function(table)
            return
        parts = _parts(table)
        if len(parts) == 1 and parts[0] in self._ctes:
            return
        view = try_system_view(parts[-2:])  # of the session's database, or the query would not have come here
        if view is None:
            raise NotForUs
        name = f"{view.schema}.{view.name}"
        self._views[name] = view
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(view.name, quoted=True)))
        self._aliases[table.alias] = view
        table.set("this", exp.to_identifier(name, quoted=True))
        table.set("db", None)
        table.set("catalog", None)

    def _table_function(self, table: exp.Table) -> None:
        """A function in FROM: its rows have one column, which bears the name of the alias."""
        if isinstance(table.this, exp.Anonymous) and str(table.this.this).lower() == KEYWORDS_VIEW:
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(KEYWORDS_VIEW))
            table.replace(exp.Table(this=exp.to_identifier(KEYWORDS_VIEW), alias=alias))
            return
        table.set("db", None)
        alias = table.args.get("alias")
        if alias is not None and not alias.columns and not table.args.get("ordinality"):
            alias.set("columns", [exp.to_identifier(alias.name, quoted=True)])

    # --- expressions ---------------------------------------------------------------------------------

    def _rewritten(self, node: exp.Expr) -> exp.Expr:
        """The tree with every node rewritten, innermost first."""
        for child in list(node.iter_expressions()):
            self._rewritten(child)
        changed = self._node(node)
        if changed is not node:
            node.replace(changed)
        return changed

    def _node(self, node: Any) -> exp.Expr:
        found: exp.Expr = self._changed(node)
        return found

    def _changed(self, node: Any) -> Any:
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Dot() if isinstance(node.this, exp.Identifier) and node.this.name in SYSTEM_SCHEMAS:
                return node.expression
            case exp.Operator():
                return self._operator(node)
            case exp.Collate():
                return node.this
            case exp.Like() | exp.ILike() if not isinstance(node.parent, exp.Escape):
                return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Bracket():
                return self._element(node)
            case exp.EQ() | exp.NEQ():
                return self._comparison(node)
            case exp.DPipe():
                return _joined(node)
            case exp.JSONBExtract() | exp.JSONBExtractScalar():
                return _at_path(node)
            case exp.Any():
                inner = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
                found = _array_literal(inner)
                if found is None and not isinstance(inner, exp.Query | exp.Subquery):
                    # Compared with an array that is NULL everything is NULL; to DuckDB it is an empty one.
                    found = exp.Coalesce(this=inner, expressions=[exp.Array(expressions=[exp.Null()])])
                return exp.Any(this=exp.Paren(this=found)) if found is not None else node
            case exp.Parameter() | exp.Placeholder():
                raise NotForUs
            case exp.Array() | exp.Exists() | exp.Case() | exp.If() | exp.RegexpLike() | exp.RegexpILike():
                return node
        called = call_of(node)
        return self._call(node, *called) if called is not None else node

    def _column(self, node: exp.Column) -> exp.Expr:
        node.set("db", None)
        node.set("catalog", None)
        if not node.table and node.name in ("user", "current_role") and not node.this.quoted:
            return self._call(node, node.name, [])
        if node.name in _NEVER_STORED:
            return exp.Literal.number(0)
        if node.name == "tableoid":
            view = self._aliases.get(node.table) if node.table else next(iter(self._aliases.values()), None)
            return exp.Literal.number(view.oid if view is not None else 0)
        return node

    def _operator(self, node: exp.Operator) -> exp.Expr:
        written = node.args["operator"]
        spelled = str(written if isinstance(written, str) else written.name).rpartition(".")[2]
        build = _OPERATORS.get(spelled)
        if build is None:
            raise NotForUs
        return exp.Paren(this=self._node(build(node.this, node.expression)))

    def _cast(self, node: exp.Expr) -> exp.Expr:
        name = type_name(node.args["to"])
        value = node.this
        if name in _NAMING_TYPES:
            return self._ask(f"{name}_in", value)
        found = _array_literal(value) if node.args["to"].is_type("array") else None
        if found is not None:
            value = found
        inner = value.unnest() if isinstance(value, exp.Paren) else value
        if name in _TEXT_TYPES and isinstance(inner, exp.Anonymous):
            for kind in _NAMING_TYPES:
                if inner.this == registered_name(f"{kind}_in", 1):
                    return self._ask(f"{kind}_out", inner)
        if name in ("regproc", "regprocedure") and isinstance(value, exp.Literal):
            return exp.Literal.string(value.name.removeprefix("pg_catalog."))
        return exp.Cast(this=value, to=_duckdb_type(node.args["to"]))

    def _element(self, node: exp.Bracket) -> exp.Expr:
        (index,) = node.expressions if len(node.expressions) == 1 else (None,)
        if index is None or isinstance(index, exp.Slice):
            raise NotForUs
        array = node.this
        name = array.unnest().name if isinstance(array, exp.Paren | exp.Column) else ""
        if name in VECTORS:
            index = exp.Add(this=index, expression=exp.Literal.number(1))
        return exp.Anonymous(this="list_extract", expressions=[array, index])

    def _comparison(self, node: exp.Binary) -> exp.Expr:
        for side, other in (("this", "expression"), ("expression", "this")):
            literal, column = node.args[side], node.args[other]
            if isinstance(column, exp.Column) and column.name in _ARRAYS and isinstance(literal, exp.Literal):
                found = _array_literal(literal)
                if found is not None:
                    node.set(side, found)
        right = node.expression
        if isinstance(right, exp.Anonymous) and str(right.this).lower() == "all" and isinstance(node, exp.NEQ):
            if len(right.expressions) != 1:
                raise NotForUs
            contained = exp.EQ(this=node.this, expression=exp.Any(this=exp.Paren(this=right.expressions[0])))
            return exp.Not(this=exp.Paren(this=contained))
        return node

    # --- calls ---------------------------------------------------------------------------------------

    def _call(self, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> exp.Expr:
        if isinstance(node, exp.SessionUser):
            name = "session_user"
        if name == "array" and arguments and isinstance(arguments[0], exp.Query):
            return node
        if name in ("any", "all", "some", "row", "extract", "position"):
            return node
        if name == "format":
            return _formatted(arguments, self._ask)
        if find_function(name, len(arguments)) is not None:
            asked = self._ask(name, *arguments)
            return _call_to("unnest", [asked]) if name in _MANY_ROWS else asked
        shared = _RENAMED.get(name, name)
        if name not in _SHARED and name not in _RENAMED:
            raise NotForUs
        if shared == "pg_expandarray":
            return exp.Anonymous(this="unnest", expressions=[_call_to(shared, arguments)])
        if shared == "generate_series" and not isinstance(node.parent, exp.Table | exp.Lateral):
            return exp.Anonymous(this="unnest", expressions=[_call_to(shared, arguments)])
        if shared != name:
            return _call_to(shared, arguments)
        return node

    def _ask(self, name: str, *arguments: exp.Expr) -> exp.Expr:
        function = find_function(name, len(arguments))
        if function is None:
            raise NotForUs
        cast = [
            _as_text(argument) if type_ == "VARCHAR" else exp.Cast(this=argument, to=exp.DataType.build(type_))
            for argument, type_ in zip(arguments, function.takes, strict=True)
        ]
        return _call_to(registered_name(name, len(arguments)), cast)


def registered_name(name: str, arity: int) -> str:
    """Under which DuckDB knows one of our functions: it cannot tell overloads apart, and has functions of its own."""
    return f"seiche_{name}_{arity}"


def _call_to(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _name_of(projection: exp.Expr) -> str:
    """As `output_name`, past the schema of a function."""
    inner = projection
    if isinstance(inner, exp.Dot) and isinstance(inner.expression, exp.Anonymous):
        inner = inner.expression
    if isinstance(inner, exp.SessionUser):
        return "session_user"
    if isinstance(inner, exp.Cast) and isinstance(inner.args["to"], exp.DataType) and inner.args["to"].args.get("kind"):
        core = inner.this
        while isinstance(core, exp.Paren | exp.Cast):
            core = core.this
        named = _name_of(core)
        return type_name(inner.args["to"]) if named == "?column?" else named
    return output_name(inner)


def _arms(tree: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs of a chain of UNION and its kin."""
    if isinstance(tree, exp.SetOperation):
        yield from _arms(tree.this)
        yield from _arms(tree.expression)
    elif isinstance(tree, exp.Subquery):
        yield from _arms(tree.this)
    elif isinstance(tree, exp.Select):
        yield tree


def _group_by_outputs(select: exp.Select) -> None:
    """GROUP BY the name of a column and of a table at once means the column, which DuckDB is told by its number."""
    group = select.args.get("group")
    if group is None:
        return
    outputs = {each.alias: place for place, each in enumerate(select.expressions, 1) if isinstance(each, exp.Alias)}
    tables = {each.alias_or_name for each in select.find_all(exp.Table)}
    for each in list(group.expressions):
        if isinstance(each, exp.Column) and not each.table and each.name in outputs and each.name in tables:
            each.replace(exp.Literal.number(outputs[each.name]))


def _joined(node: exp.DPipe) -> exp.DPipe:
    """An array that is NULL adds nothing to another one, other than text."""
    for side in ("this", "expression"):
        operand = node.args[side]
        if isinstance(operand, exp.Column) and operand.name in _ARRAYS:
            node.set(side, exp.Coalesce(this=operand.copy(), expressions=[exp.Array()]))
    return node


def _as_text(value: exp.Expr) -> exp.Expr:
    if isinstance(value, exp.Literal) and value.is_string:
        return value
    return exp.Cast(this=value, to=exp.DataType.build("text"))


def type_name(node: exp.Expr) -> str:
    """The type's bare name in lower case, `"char"` in its quotes."""
    if isinstance(node, exp.DataType):
        kind = node.args.get("kind")
        if kind is not None:
            last = kind.expression if isinstance(kind, exp.Dot) else kind
            if isinstance(last, exp.Identifier) and last.quoted and last.name == "char":
                return '"char"'
            return str(last.name if isinstance(last, exp.Identifier) else last).lower().rpartition(".")[2]
        return str(node.this.name if hasattr(node.this, "name") else node.this).lower()
    return str(node.this).lower()


def _duckdb_type(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.DataType) and node.is_type("array"):
        return exp.DataType(this=node.this, expressions=[_duckdb_type(node.expressions[0])], nested=True)
    name = type_name(node)
    if name in _TEXT_TYPES:
        return exp.DataType.build("text")
    if name in _NUMBER_TYPES or name in _NAMING_TYPES:
        return exp.DataType.build("bigint")
    if name == "int2vector":
        return exp.DataType.build("smallint[]", dialect="postgres")
    if name == "oidvector":
        return exp.DataType.build("bigint[]", dialect="postgres")
    if isinstance(node, exp.DataType) and node.args.get("kind") is not None:
        known = {"int2": "smallint", "int4": "int", "int8": "bigint", "float4": "float", "float8": "double"}
        known |= {"bool": "boolean", "timestamptz": "timestamptz", "timestamp": "timestamp", "date": "date"}
        known |= {"numeric": "decimal", "interval": "interval", "time": "time", "bytea": "varbinary"}
        known |= {"cardinal_number": "int", "time_stamp": "timestamptz"}
        if name not in known:
            raise UndefinedObject(f'type "{name}" does not exist', position=place_of(node))
        return exp.DataType.build(known[name])
    return node


def _array_literal(node: exp.Expr) -> exp.Expr | None:
    """An array that is spelled as text, `'{a,b}'`, as an array; None for anything else."""
    cast: exp.Expr | None = None
    if isinstance(node, exp.Cast) and node.args["to"].is_type("array"):
        cast, node = node.args["to"], node.this
    if not (isinstance(node, exp.Literal) and node.is_string):
        return None
    found = _ARRAY_LITERAL.fullmatch(node.name.strip())
    if found is None:
        return None
    items: list[exp.Expr] = []
    for quoted, bare in _ARRAY_ITEM.findall(found.group(1)):
        if bare and bare.strip().upper() == "NULL":
            items.append(exp.Null())
        else:
            items.append(exp.Literal.string(re.sub(r"\\(.)", r"\1", quoted) if quoted else bare.strip()))
    array = exp.Array(expressions=items)
    return exp.Cast(this=array, to=_duckdb_type(cast)) if cast is not None else array


def _at_path(node: exp.JSONBExtract | exp.JSONBExtractScalar) -> exp.Expr:
    """`value #> '{a,0}'` and `value #>> '{a,0}'`; a number is taken for a place in an array."""
    steps = _array_literal(node.expression)
    if not isinstance(steps, exp.Array):
        raise NotForUs
    names = [step.name for step in steps.expressions]
    path = "$" + "".join(f"[{name}]" if name.isdigit() else "." + json.dumps(name) for name in names)
    found = "json_extract_string" if isinstance(node, exp.JSONBExtractScalar) else "json_extract"
    return _call_to(found, [exp.Paren(this=node.this), exp.Literal.string(path)])


def _formatted(arguments: list[exp.Expr], ask: Callable[..., exp.Expr]) -> exp.Expr:
    """`format('%I.%s', a, b)` as the concatenation that it stands for."""
    if not arguments or not isinstance(arguments[0], exp.Literal):
        raise NotForUs
    values = iter(arguments[1:])
    pieces: list[exp.Expr] = []
    for piece in re.split(r"(%[sIL%])", arguments[0].name):
        match piece:
            case "%%":
                pieces.append(exp.Literal.string("%"))
            case "%s" | "%I" | "%L":
                value = next(values, None)
                if value is None:
                    raise NotForUs
                makers = {"%I": "quote_ident", "%L": "quote_nullable"}
                pieces.append(ask(makers[piece], value) if piece in makers else _as_text(value))
            case _ if "%" in piece:
                raise NotForUs
            case _ if piece:
                pieces.append(exp.Literal.string(piece))
    return _call_to("concat", pieces or [exp.Literal.string("")])
