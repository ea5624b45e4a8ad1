"""`seiche prepare`: makes the archive of Java classes from which Spark starts sooner.

A shell of its own, in a folder of its own, works through a script that touches what engines usually do; its Java
process writes the archive when it ends. The archive has another name until it is whole.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO

from seiche import class_archive

SCRIPT = """
CREATE TABLE berths (id int PRIMARY KEY, quay text, depth numeric(4, 1));
CREATE TABLE ships (id int PRIMARY KEY, name text NOT NULL, tons bigint, length double precision, built date,
                    crew int[], papers jsonb);
CREATE TABLE arrivals (ship int, berth int, at timestamptz, minutes real);
CREATE TABLE tides (at timestamp, metres double precision) APPEND ONLY;
CREATE MATERIALIZED VIEW heavy AS SELECT id, upper(name) AS name, tons * 2 AS twice FROM ships WHERE tons > 10;
CREATE MATERIALIZED VIEW calls AS
    SELECT s.name, b.quay, count(*) AS calls, sum(s.tons) AS tons, avg(a.minutes) AS minutes, max(a.at) AS latest
    FROM arrivals a JOIN ships s ON s.id = a.ship JOIN berths b ON b.id = a.berth GROUP BY s.name, b.quay;
CREATE MATERIALIZED VIEW busy AS SELECT quay, sum(calls) AS calls FROM calls GROUP BY quay HAVING sum(calls) > 0;
CREATE MATERIALIZED VIEW idle AS SELECT s.id, a.at FROM ships s LEFT JOIN arrivals a ON a.ship = s.id;
CREATE MATERIALIZED VIEW away AS SELECT id FROM ships s WHERE NOT EXISTS (SELECT FROM arrivals a WHERE a.ship = s.id);
CREATE MATERIALIZED VIEW ranks AS SELECT ship, at, rank() OVER (PARTITION BY berth ORDER BY at) AS nth FROM arrivals;
CREATE MATERIALIZED VIEW longest AS SELECT id, length FROM ships ORDER BY length DESC LIMIT 2;
CREATE MATERIALIZED VIEW quays AS SELECT DISTINCT quay FROM berths UNION SELECT name FROM ships;
CREATE MATERIALIZED VIEW levels AS
    SELECT window_start, min(metres), stddev_pop(metres)
    FROM tumble(tides, at, INTERVAL '1 hour') GROUP BY window_start;
INSERT INTO berths VALUES (1, 'north', 9.5), (2, 'north', 12), (3, 'south', 7);
INSERT INTO ships VALUES (1, 'Alma', 20, 41.5, '1999-05-01', '{1,2}', '{"flag": "NO"}'),
                         (2, 'Bora', 5, 18, '2011-01-31', '{}', '[1, null]'), (3, 'Cora', 60, 77, NULL, NULL, NULL);
INSERT INTO arrivals VALUES (1, 1, '2026-01-01 10:00:00+00', 30), (2, 1, '2026-01-01 11:00:00+00', 12.5);
INSERT INTO arrivals SELECT 1 + n % 3, 1 + n % 3, '2026-01-02'::timestamptz + n * INTERVAL '1 minute', n
    FROM generate_series(1, 20000) AS g(n);
INSERT INTO tides SELECT '2026-01-01'::timestamp + n * INTERVAL '10 minutes', sin(n)
    FROM generate_series(1, 100) AS g(n);
UPDATE ships SET tons = tons + 1 WHERE id = 1;
DELETE FROM arrivals WHERE ship = 2;
INSERT INTO ships (id, name, tons) VALUES (4, 'Dana', 33);
UPDATE berths SET quay = 'east' WHERE id = 2;
CREATE MATERIALIZED VIEW late AS SELECT berth, count(DISTINCT ship) AS ships FROM arrivals GROUP BY berth;
CREATE INDEX by_ship ON arrivals (ship);
SELECT * FROM calls ORDER BY tons DESC, name;
SELECT * FROM heavy WHERE id = 3;
SELECT s.name, unnest(s.crew), s.papers ->> 'flag' FROM ships s JOIN idle i USING (id) WHERE s.built < now() LIMIT 5;
SELECT string_agg(name, ', ' ORDER BY name), array_agg(id), regexp_replace(min(name), 'a', 'b') FROM ships;
SELECT at, count(*) OVER (ORDER BY at) FROM arrivals WHERE minutes > (SELECT avg(minutes) FROM arrivals) LIMIT 5;
EXPLAIN CREATE MATERIALIZED VIEW more AS SELECT name, count(*) FROM ships GROUP BY name;
DROP MATERIALIZED VIEW busy;
"""


def run(out: TextIO, *, anew: bool = False) -> int:
    """Makes the archive unless it is there. Returns the exit code."""
    archive = class_archive.fitting()
    if archive is None:
        out.write("Java or Spark is missing: `seiche doctor` tells what to install\n")
        return 1
    if archive.is_file() and not anew:
        out.write(f"{archive} is there already\n")
        return 0
    try:
        _clear(archive.parent)
    except OSError as failure:
        out.write(f"{archive.parent} is not writable: {failure.strerror}. Run this as who installed Seiche.\n")
        return 1
    started = time.monotonic()
    making = archive.with_suffix(".making")
    with tempfile.TemporaryDirectory(prefix="seiche-prepare-") as folder:
        worked, said = _work(making, Path(folder))
    if not worked or not making.is_file():
        making.unlink(missing_ok=True)
        what = "Java wrote no archive" if worked else "the work to learn from failed"
        out.write(f"{what}, so every start takes as long as before. This was said:\n{said}\n")
        return 1
    making.rename(archive)
    size = archive.stat().st_size >> 20
    out.write(f"made {archive} ({size} MiB) in {time.monotonic() - started:.0f} s: Spark starts from it from now on\n")
    return 0


def _clear(folder: Path) -> None:
    """Archives of other Sparks and Javas that were in this environment go: each is as large as all the jars."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("classes-*.jsa"), *folder.glob("classes-*.making")):
        old.unlink(missing_ok=True)


def _work(archive: Path, folder: Path) -> tuple[bool, str]:
    """Runs the script to the end of its Java process, which holds the pipe as long as it lives.

    Gives whether all of it worked, and what was said.
    """
    options = [os.environ.get("SPARK_SUBMIT_OPTS", ""), *class_archive.making_options(archive)]
    script = folder / "prepare.sql"
    script.write_text(SCRIPT, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "seiche.cli.main", "sql", "--data-dir", str(folder / "data"), "-f", str(script)],
        env={**os.environ, "SPARK_SUBMIT_OPTS": " ".join(options).strip()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ended.returncode == 0, ended.stdout[-2000:]
