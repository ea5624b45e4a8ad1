"""Users and what they may do: CREATE and ALTER USER, GRANT, REVOKE, ALTER ... OWNER TO."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from seiche.errors import SyntaxError_, nearest
from seiche.sql.grammar.create_function import parameter_list
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.statements import (
    AlterDefaultPrivileges,
    AlterUser,
    CreateUser,
    Grant,
    GrantTarget,
    ObjectKind,
    ObjectName,
    Revoke,
)

_FLAGS = frozenset(
    """
    superuser nosuperuser createdb nocreatedb createuser nocreateuser createrole nocreaterole login nologin inherit
    noinherit
    """.split()
)
_PRIVILEGES = ("select", "insert", "update", "delete", "create", "usage", "connect", "execute")
_PLURALS = {
    ("tables",): ObjectKind.TABLE,
    ("materialized", "views"): ObjectKind.MATERIALIZED_VIEW,
    ("views",): ObjectKind.VIEW,
    ("sources",): ObjectKind.SOURCE,
    ("sinks",): ObjectKind.SINK,
    ("functions",): ObjectKind.FUNCTION,
    ("subscriptions",): ObjectKind.SUBSCRIPTION,
    ("secrets",): ObjectKind.SECRET,
}


def create_user(cursor: Cursor) -> CreateUser:
    name = cursor.user_name()
    flags, password, _ = _options(cursor)
    return CreateUser(name, flags, password)


def alter_user(cursor: Cursor) -> AlterUser:
    name = cursor.user_name()
    if cursor.accept("rename", "to"):
        return AlterUser(name, new_name=cursor.user_name())
    if cursor.peek() is None:
        raise cursor.error()
    flags, password, sets_password = _options(cursor)
    return AlterUser(name, flags, password, sets_password)


def _options(cursor: Cursor) -> tuple[tuple[str, ...], str | None, bool]:
    cursor.accept("with")
    flags: list[str] = []
    password: str | None = None
    sets_password = False
    while cursor.peek() is not None:
        token = cursor.peek()
        quoted = token is not None and token.token_type is TokenType.IDENTIFIER
        word = token.text if token is not None and quoted else cursor.word()
        if word in _FLAGS:
            cursor.index += 1
            flags.append(word.replace("createrole", "createuser"))
        elif cursor.accept("password") or cursor.accept("encrypted", "password"):
            password = None if cursor.accept("null") else cursor.string()
            sets_password = True
        elif quoted:
            raise SyntaxError_(
                f'unexpected user option: "{word}"',
                hint=nearest(word.lower(), (*_FLAGS, "password")),
                position=cursor.position(),
            )
        else:
            known = nearest(word.lower(), (*_FLAGS, "password"))
            raise cursor.error(hint=" ".join(filter(None, (f"{word} is an unexpected user option.", known))))
    return tuple(flags), password, sets_password


def grant(cursor: Cursor) -> Grant:
    privileges = _privileges(cursor)
    cursor.expect("on")
    target = _target(cursor)
    cursor.expect("to")
    users = cursor.comma_separated(lambda: _grantee(cursor))
    option = cursor.accept("with", "grant", "option")
    return Grant(privileges, target, users, option, _granted_by(cursor))


def revoke(cursor: Cursor) -> Revoke:
    option_only = cursor.accept("grant", "option", "for")
    privileges = _privileges(cursor)
    cursor.expect("on")
    target = _target(cursor)
    cursor.expect("from")
    users = cursor.comma_separated(lambda: _grantee(cursor))
    granted_by = _granted_by(cursor)
    cascade = cursor.accept("cascade")
    if not cascade:
        cursor.accept("restrict")
    return Revoke(privileges, target, users, option_only, cascade, granted_by)


def alter_default_privileges(cursor: Cursor) -> AlterDefaultPrivileges:
    owners: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    if cursor.accept("for", "user") or cursor.accept("for", "role"):
        owners = cursor.comma_separated(lambda: cursor.user_name())
    if cursor.accept("in", "schema"):
        schemas = cursor.comma_separated(lambda: cursor.object_name().name)
    revokes = not cursor.accept("grant")
    option = False
    if revokes:
        cursor.expect("revoke")
        option = cursor.accept("grant", "option", "for")
    privileges = _privileges(cursor)
    cursor.expect("on")
    position = cursor.position()
    kind = ObjectKind.SCHEMA if cursor.accept("schemas") else _plural(cursor)
    if kind is ObjectKind.SCHEMA and schemas:
        raise SyntaxError_("cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS", position=position)
    cursor.expect("from" if revokes else "to")
    users = cursor.comma_separated(lambda: _grantee(cursor))
    if revokes:
        cursor.accept("cascade") or cursor.accept("restrict")
    else:
        option = cursor.accept("with", "grant", "option")
    return AlterDefaultPrivileges(privileges, kind, users, owners, schemas, revokes, option)


def _granted_by(cursor: Cursor) -> str | None:
    return cursor.user_name() if cursor.accept("granted", "by") else None


def _privileges(cursor: Cursor) -> tuple[str, ...]:
    """The privileges named, empty for ALL."""
    if cursor.accept("all"):
        cursor.accept("privileges")
        return ()

    def privilege() -> str:
        word = cursor.word()
        if word not in _PRIVILEGES:
            if word and (cursor.word(1) == "to" or cursor.word(1) == "from"):
                raise cursor.unsupported("membership in roles", hint="Grant privileges to each user.")
            raise cursor.error(hint=nearest(word, _PRIVILEGES))
        cursor.index += 1
        if cursor.sees_symbol(TokenType.L_PAREN):
            raise cursor.unsupported("a privilege on single columns", hint="Grant it on a view with those columns.")
        return word

    return cursor.comma_separated(privilege)


def _target(cursor: Cursor) -> GrantTarget:
    if cursor.accept("all"):
        kind = _plural(cursor)
        cursor.expect("in", "schema")
        return GrantTarget(kind, cursor.comma_separated(lambda: ObjectName((cursor.name(),))), True, True)
    kind, explicit = ObjectKind.TABLE, False
    for each in ObjectKind:
        if cursor.accept(*each.value.split()):
            kind, explicit = each, True
            break
    return GrantTarget(kind, cursor.comma_separated(lambda: named(cursor, kind)), False, explicit)


def _plural(cursor: Cursor) -> ObjectKind:
    for words, kind in _PLURALS.items():
        if cursor.accept(*words):
            return kind
    raise cursor.error(hint=nearest(cursor.word(), (words[-1] for words in _PLURALS)))


def named(cursor: Cursor, kind: ObjectKind) -> ObjectName:
    """A name. A user's may be `user`; a function's may have the types of its parameters."""
    if kind is ObjectKind.USER:
        return ObjectName((cursor.user_name(),))
    name = cursor.object_name()
    if kind is not ObjectKind.FUNCTION or not cursor.sees_symbol(TokenType.L_PAREN):
        return name
    return ObjectName(name.parts, tuple(each.type for each in parameter_list(cursor)))


def _grantee(cursor: Cursor) -> str:
    """A user, or `public` for everybody, which no user is called."""
    cursor.accept("group")
    return cursor.user_name()
