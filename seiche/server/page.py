"""The dashboard's page: one overview as HTML that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from seiche.session.observed import Overview

REFRESH_SECONDS = 5
BAR_WIDTH, CHART_HEIGHT = 5, 60

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
       color: #1d2b36; background: #f7f9fa; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; background: #fff; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid #dde5ea; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.good { color: #0b6b3a; } .bad { color: #a3231f; } .quiet { color: #5c6f7b; }
svg { background: #fff; border: 1px solid #dde5ea; } rect { fill: #2f6f9f; }
"""


def render(overview: Overview) -> str:
    state = "paused" if overview.paused and overview.healthy else overview.state
    moment = datetime.fromtimestamp(overview.committed_ms / 1000, UTC)
    as_of = f"{moment:%Y-%m-%d %H:%M:%S} UTC" if overview.committed_ms else "nothing is committed yet"
    summary = [
        ("state", f'<span class="{"good" if overview.healthy else "bad"}">{escape(state)}</span>'),
        ("committed epoch", f"{overview.committed_epoch} ({as_of})"),
        ("sessions", str(overview.sessions)),
        ("last error", escape(overview.last_error or "none")),
    ]
    relations = [
        (escape(each.name), escape(each.kind), _number(each.rows), _number(each.segments))
        for each in overview.relations
    ]
    jobs = [(str(each.id), escape(each.name), escape(each.what), escape(each.progress)) for each in overview.jobs]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="{REFRESH_SECONDS}"><title>Seiche</title><style>{_STYLE}</style></head><body>
<h1>Seiche</h1>
{_table((), summary)}
<h2>Epochs</h2>
{_epochs(overview.epoch_seconds)}
<h2>Jobs</h2>
{_table(("Id", "View", "What", "Progress"), jobs, empty="no view is being created or on a schedule")}
<h2>Relations</h2>
{_table(("Name", "Kind", "Rows (about)", "Segments"), relations, empty="there are none")}
<p class="quiet">Figures for machines are at <a href="/metrics">/metrics</a>.</p>
</body></html>
"""


def _table(head: Sequence[str], lines: Iterable[Sequence[str]], *, empty: str = "") -> str:
    """A table of cells that are HTML already."""
    body = "".join(f"<tr>{''.join(map(_cell, line))}</tr>" for line in lines)
    if not body:
        return f'<p class="quiet">{empty}</p>'
    titles = f"<tr>{''.join(f'<th>{title}</th>' for title in head)}</tr>" if head else ""
    return f"<table>{titles}{body}</table>"


def _cell(text: str) -> str:
    kind = ' class="number"' if text.replace(",", "").isdecimal() else ""
    return f"<td{kind}>{text}</td>"


def _number(value: int) -> str:
    return f"{value:,}"


def _epochs(seconds: Sequence[float]) -> str:
    if not seconds:
        return '<p class="quiet">none since the start</p>'
    longest = max(max(seconds), 0.001)
    bars = "".join(
        f'<rect x="{at * BAR_WIDTH}" y="{CHART_HEIGHT - (height := max(round(CHART_HEIGHT * each / longest), 1))}"'
        f' width="{BAR_WIDTH - 1}" height="{height}"><title>{each * 1000:.0f} ms</title></rect>'
        for at, each in enumerate(seconds)
    )
    middle = sorted(seconds)[len(seconds) // 2]
    words = f"the last {len(seconds)}: median {middle * 1000:.0f} ms, longest {longest * 1000:.0f} ms"
    chart = f'<svg width="{len(seconds) * BAR_WIDTH}" height="{CHART_HEIGHT}" role="img">{bars}</svg>'
    return f'<p class="quiet">{words}</p>{chart}'
