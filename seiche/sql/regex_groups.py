"""A regular expression as a tree of its groups, and what is known of them before there is a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from seiche.sql.regex_parts import Part, Token


@dataclass(slots=True)
class Piece:
    """What stands in an alternative, with how often it may: Java's quantifier, or nothing for once."""

    what: Token | Group
    times: str = ""

    @property
    def may_be_left_out(self) -> bool:
        return self.times[:1] in ("*", "?") or self.times.startswith("{0")

    @property
    def is_repeated(self) -> bool:
        return self.times[:1] in ("*", "+", "{")

    @property
    def varies(self) -> bool:
        """Whether it may match the same text in several ways."""
        if self.times and not re.fullmatch(r"\{\d+\}", self.times):
            return True
        return isinstance(self.what, Group) and self.what.varies

    @property
    def may_be_empty(self) -> bool:
        if isinstance(self.what, Group):
            return self.may_be_left_out or self.what.looks or self.what.may_be_empty
        return self.may_be_left_out or self.what.part not in (Part.ATOM, Part.BRACKET)


@dataclass(slots=True)
class Group:
    """What stands in parentheses, or all of the pattern. The number is 0 if it is not counted."""

    opening: str = ""
    number: int = 0
    looks: bool = False
    branches: list[list[Piece]] = field(default_factory=lambda: [[]])

    def pieces(self) -> Iterator[Piece]:
        for branch in self.branches:
            yield from branch

    def groups(self) -> Iterator[Group]:
        """Those directly in it."""
        return (piece.what for piece in self.pieces() if isinstance(piece.what, Group))

    @property
    def varies(self) -> bool:
        return len(self.branches) > 1 or any(piece.varies for piece in self.pieces())

    @property
    def may_be_empty(self) -> bool:
        """Whether it may match nothing. A reference to another group is in doubt, and may."""
        return any(all(piece.may_be_empty for piece in branch) for branch in self.branches)

    @property
    def depth(self) -> int:
        """How many groups stand in each other, itself included."""
        return 1 + max((each.depth for each in self.groups()), default=0)

    @property
    def numbers(self) -> frozenset[int]:
        """The counted ones, itself included."""
        own = {self.number} if self.number else set[int]()
        return frozenset(own.union(*(each.numbers for each in self.groups())))

    @property
    def certain(self) -> frozenset[int]:
        """The counted ones that take part whenever it does: nothing around them is left out or has an alternative."""
        out = {self.number} if self.number else set[int]()
        if len(self.branches) == 1:
            for piece in self.pieces():
                if isinstance(piece.what, Group) and not (piece.what.looks or piece.may_be_left_out):
                    out |= piece.what.certain
        return frozenset(out)

    @property
    def repeated(self) -> frozenset[int]:
        """The counted ones that may take part several times in one match."""
        out = set[int]()
        for piece in self.pieces():
            if isinstance(piece.what, Group):
                out |= piece.what.numbers if piece.is_repeated else piece.what.repeated
        return frozenset(out)

    @property
    def has_deep_loops(self) -> bool:
        """Whether a repeated one varies: each time of it then waits for what follows."""
        return any(
            isinstance(piece.what, Group) and ((piece.is_repeated and piece.what.varies) or piece.what.has_deep_loops)
            for piece in self.pieces()
        )


def tree_of(tokens: Sequence[Token]) -> Group:
    """All of the pattern."""
    levels, count = [Group()], 0
    for token in tokens:
        branch = levels[-1].branches[-1]
        match token.part:
            case Part.GROUP | Part.PLAIN_GROUP | Part.LOOK:
                counted = token.part is Part.GROUP
                count += counted
                made = Group(token.java, count if counted else 0, token.part is Part.LOOK)
                branch.append(Piece(made))
                levels.append(made)
            case Part.CLOSE:
                levels.pop()
            case Part.BAR:
                levels[-1].branches.append([])
            case Part.QUANTIFIER:
                branch[-1].times = token.java
            case _:
                branch.append(Piece(token))
    return levels[0]


__all__ = ["Group", "Piece", "tree_of"]
