"""What CREATE MATERIALIZED VIEW … WITH (…) may say, read and checked."""

from __future__ import annotations

from dataclasses import dataclass

from seiche.errors import (
    FeatureNotSupported,
    InvalidDefinition,
    InvalidParameter,
    SyntaxError_,
    UndefinedObject,
    nearest,
)
from seiche.model import RelationId
from seiche.session.names import CatalogNames
from seiche.sql.parse import parse_name
from seiche.sql.statements import Options
from seiche.stream.backfill.rate_limit import rate_of
from seiche.stream.backfill.stages import read_order, sorted_by
from seiche.stream.batch_refresh.schedule import CRON, INTERVAL, Schedule, read_schedule

RATE_LIMIT = "backfill_rate_limit"
ORDER = "backfill_order"
INCREMENTAL = "incremental"
SERVERLESS = "cloud.serverless_backfill_enabled"  # of a service that rents out machines for backfills
KNOWN = (INCREMENTAL, RATE_LIMIT, ORDER, INTERVAL, CRON)


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """`rate` is None where the session's variable decides, and a text as the user wrote it elsewhere."""

    strict: bool
    rate: str | None
    order: tuple[tuple[str, str], ...]
    schedule: Schedule | None

    def rate_limit(self, of_session: str) -> int | None:
        return rate_of(of_session if self.rate is None else self.rate, where=RATE_LIMIT)

    def order_of(self, names: CatalogNames) -> tuple[tuple[RelationId, RelationId], ...]:
        """The order as pairs of inputs. Raises for a name that the view does not read, and for a cycle."""
        found = {text: _input(text, names) for pair in self.order for text in pair}
        pairs = tuple((found[before], found[after]) for before, after in self.order)
        written = {relation: text for text, relation in found.items()}
        sorted_by(pairs, {}, written.__getitem__)
        return pairs


def read_options(options: Options) -> ViewOptions:
    given: dict[str, str] = {}
    for name, value in options:
        if name == SERVERLESS:
            raise FeatureNotSupported("Serverless Backfill is disabled", hint=f"Leave {SERVERLESS} out.")
        if name not in KNOWN:
            raise FeatureNotSupported(
                f'option "{name}" is not supported',
                detail="There are unexpected options in WITH clause.",
                hint=nearest(name, KNOWN),
            )
        if name in given:
            raise InvalidDefinition(f'option "{name}" is given twice', detail=f"Duplicated option: {name}.")
        given[name] = value
    incremental = given.get(INCREMENTAL, "auto")
    if incremental not in ("auto", "strict"):
        raise InvalidDefinition(f"incremental must be 'auto' or 'strict', not '{incremental}'")
    rate_of(given.get(RATE_LIMIT), where=RATE_LIMIT)
    order = tuple(read_order(given.get(ORDER, "auto")))
    return ViewOptions(incremental == "strict", given.get(RATE_LIMIT), order, read_schedule(given))


def _input(text: str, names: CatalogNames) -> RelationId:
    try:
        parts = parse_name(text).parts
    except SyntaxError_ as error:  # what it points at is a place in the name, not in the statement
        hint = 'Names with other characters than letters are quoted: FIXED("My ships" -> berths).'
        raise InvalidParameter(f"backfill_order has {text} where a name should be", hint=hint) from error
    found = names.read_by_name(parts)
    if found is None:
        raise UndefinedObject(
            f'backfill_order names "{text}", which the view does not read',
            detail=f"Table or source '{text}' specified in backfill_order is not used in the query.",
            hint=nearest(parts[-1], names.read_names()) or "Name the tables and views of its FROM clauses.",
        )
    return RelationId(found.id)
