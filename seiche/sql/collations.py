"""COLLATE: texts are compared by their code points everywhere, so only the collations that mean just that are taken."""

from __future__ import annotations

from seiche.errors import DatatypeMismatch, UndefinedObject
from seiche.types import Kind, SqlType

BY_CODE_POINT = ("C", "POSIX", "default", "ucs_basic")


def refuse_collation(name: str, type_: SqlType | None, position: int | None = None) -> None:
    """Raises unless the collation exists and the type is text; None is a literal whose type is not settled yet."""
    if type_ is not None and type_.kind is not Kind.VARCHAR:
        raise DatatypeMismatch(f"collations are not supported by type {type_}", position=position)
    if name not in BY_CODE_POINT:
        raise UndefinedObject(
            f'collation "{name}" does not exist',
            detail="Texts are compared by their code points.",
            hint='Write COLLATE "C", or leave it out.',
            position=position,
        )
