"""Variables in the text of a record: `$name`, `${name}`, `${name:default}`; a backslash takes `$` and itself.

A default may hold variables. A name that has no value and no default is an error, so that a typing mistake does not
become an empty string.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from seiche.errors import InvalidParameter

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """The text with its variables' values. Raises InvalidParameter for an unknown or unfinished one."""
    out: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character == "\\" and text[at + 1 : at + 2] in ("$", "\\", "{", "}", ":"):
            out.append(text[at + 1])
            at += 2
        elif character == "$" and text[at + 1 : at + 2] == "{":
            end = _closing(text, at + 1)
            out.append(_braced(text[at + 2 : end], variables))
            at = end + 1
        elif character == "$" and (name := _NAME.match(text, at + 1)):
            out.append(_value(name[0], variables))
            at = name.end()
        elif character == "$":
            raise InvalidParameter("a variable has no name", hint="Write a plain dollar sign as \\$.")
        else:
            out.append(character)
            at += 1
    return "".join(out)


def _braced(inner: str, variables: Mapping[str, str]) -> str:
    name, colon, default = inner.partition(":")
    if not _NAME.fullmatch(name):
        raise InvalidParameter(f'"{name}" is not the name of a variable')
    if name not in variables and colon:
        return substitute(default, variables)
    return _value(name, variables)


def _closing(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)):
        if text[at - 1] == "\\":
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise InvalidParameter("a variable in braces does not end", hint="Write it as ${name}.")


def _value(name: str, variables: Mapping[str, str]) -> str:
    try:
        return variables[name]
    except KeyError:
        raise InvalidParameter(
            f'variable "{name}" has no value', hint=f"Set it in the environment, or write ${{{name}:default}}."
        ) from None
