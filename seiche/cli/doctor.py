"""`seiche doctor`: whether the surroundings are fit to run in, one line a check, and what to do where not.

Each check is a function from the config to a `Finding`. None of them starts Spark, and none changes anything: they
may run beside an engine that uses the same folder.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import TextIO

from seiche import class_archive
from seiche.clock import SystemClock
from seiche.config import Config
from seiche.errors import LeaseHeld, SeicheError

PYTHON_OLDEST = (3, 11)
JAVA_OLDEST = 17
SPARK_OLDEST = (4, 1)
SPARK_NEWEST = (4, 3)
DISK_LEAST_BYTES = 1 << 30
PACKAGES = ("pyarrow", "pandas", "pyiceberg", "sqlglot", "sqlalchemy", "alembic", "psycopg", "prompt_toolkit", "rich")


class State(Enum):
    OK = "ok"
    WARN = "warn"  # works, but not well
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    state: State
    fact: str
    advice: str = ""


Check = Callable[[Config], Finding]


def run(config: Config, *, quiet: bool, out: TextIO) -> int:
    """Prints a line a check, only those that are not fine if `quiet`. Returns the exit code."""
    worst_is_fail = False
    for name, check in CHECKS:
        finding = check(config)
        worst_is_fail |= finding.state is State.FAIL
        if quiet and finding.state is State.OK:
            continue
        out.write(f"{finding.state.value:<5} {name:<12} {finding.fact}\n")
        if finding.advice:
            out.write(f"{'':<18} -> {finding.advice}\n")
        out.flush()
    return 1 if worst_is_fail else 0


def check_python(config: Config) -> Finding:
    fact = f"Python {platform.python_version()} at {sys.executable}"
    if sys.version_info[:2] < PYTHON_OLDEST:
        return Finding(State.FAIL, fact, "Install Python 3.11 or newer and create the environment again.")
    return Finding(State.OK, fact)


def check_java(config: Config) -> Finding:
    return java_finding(os.environ)


def java_finding(environ: Mapping[str, str]) -> Finding:
    """Looks for Java where Spark does: in JAVA_HOME if that is set, else on the PATH."""
    advice = (
        f"Install Java {JAVA_OLDEST} or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless), "
        "or set JAVA_HOME to one."
    )
    home, java = environ.get("JAVA_HOME"), class_archive.java_program(environ)
    if java is None:
        return Finding(State.FAIL, "no java on the PATH, and JAVA_HOME is not set", advice)
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as failure:
        said = f"{java} cannot be run: {failure}" + (f" (JAVA_HOME is {home})" if home else "")
        return Finding(State.FAIL, said, advice)
    version = java_version(answer.stderr + answer.stdout)
    if version is None:
        said = (answer.stderr + answer.stdout).strip().partition("\n")[0]
        return Finding(State.FAIL, f"{java} does not tell its version: {said or 'it says nothing'}", advice)
    if version < JAVA_OLDEST:
        return Finding(State.FAIL, f"Java {version} at {java} is too old", advice)
    return Finding(State.OK, f"Java {version} at {java}")


def java_version(text: str) -> int | None:
    """The major version in what `java -version` prints: 17 of "17.0.15", 8 of "1.8.0_392"."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    major = int(found.group(1))
    return int(found.group(2) or 0) if major == 1 else major


def check_spark(config: Config) -> Finding:
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return Finding(
            State.FAIL, "pyspark is not installed", "Install Seiche with its dependencies: pip install seiche"
        )
    return spark_finding(version)


def spark_finding(version: str) -> Finding:
    found = re.match(r"(\d+)\.(\d+)", version)
    fact = f"pyspark {version}"
    if found and SPARK_OLDEST <= (int(found[1]), int(found[2])) <= SPARK_NEWEST:
        return Finding(State.OK, fact)
    oldest, newest = (".".join(map(str, v)) for v in (SPARK_OLDEST, SPARK_NEWEST))
    return Finding(State.FAIL, fact, f"Seiche runs on pyspark {oldest} to {newest}: pip install 'pyspark~={newest}.0'")


def check_archive(config: Config) -> Finding:
    archive = class_archive.fitting()
    if archive is None:
        return Finding(State.OK, "needs Java and Spark")
    if archive.is_file():
        return Finding(State.OK, f"Spark starts from {archive}")
    return Finding(State.OK, "none that fits", "Starts take a fifth less time after: seiche prepare")


def check_packages(config: Config) -> Finding:
    missing = []
    for name in PACKAGES:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding(State.FAIL, f"not installed: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    return Finding(State.OK, ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES[:4]) + " and others")


def check_memory(config: Config) -> Finding:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return Finding(State.OK, "size of the memory is not known on this system")
    heap = int(config.driver_memory[:-1]) << {"k": 10, "m": 20, "g": 30, "t": 40}[config.driver_memory[-1].lower()]
    lookups = config.lookup_memory_bytes
    fact = f"{_size(total)} of memory, driver_memory = {config.driver_memory}, for lookups {_size(lookups)}"
    if heap + lookups > total * 0.8:
        advice = "Lower driver_memory or lookup_memory_bytes, for instance SEICHE_DRIVER_MEMORY=1g."
        return Finding(State.WARN, fact, advice)
    return Finding(State.OK, fact)


def check_disk(config: Config) -> Finding:
    folder = _existing(config.data_dir)
    try:
        free = shutil.disk_usage(folder).free
    except OSError as failure:
        return Finding(State.FAIL, f"free space of {folder} is not known: {failure.strerror}", "Check the path.")
    fact = f"{_size(free)} free at {folder}"
    if free < DISK_LEAST_BYTES:
        return Finding(State.FAIL, fact, f"Make room: Seiche wants at least {_size(DISK_LEAST_BYTES)}.")
    return Finding(State.OK, fact)


def check_folder(config: Config) -> Finding:
    folder = config.data_dir.absolute()
    nearest = _existing(folder)
    advice = "Give write permission, or choose another folder with --data-dir or SEICHE_DATA_DIR."
    if not nearest.is_dir():
        return Finding(State.FAIL, f"{nearest} is not a folder", advice)
    try:
        # Permissions alone do not tell: the disk may be mounted read-only.
        with tempfile.NamedTemporaryFile(dir=nearest, prefix=".seiche-doctor-"):
            pass
    except OSError as failure:
        return Finding(State.FAIL, f"{nearest} is not writable: {failure.strerror}", advice)
    return Finding(State.OK, f"{folder} is writable" if nearest == folder else f"{folder} can be created")


def check_metadata(config: Config) -> Finding:
    """Looks into the metadata database: its version, and whether a process has it."""
    address = config.metadata_address
    shown = {name: str(value) for name, value, _, _ in config.items()}["metadata"]
    if address.startswith("sqlite:///") and not Path(address.removeprefix("sqlite:///")).exists():
        return Finding(State.OK, f"{shown} will be created")
    # Late, so that a missing package is reported by the check above instead of breaking this command.
    from seiche.catalog.look import look

    try:
        sight = look(address, clock=SystemClock())
    except LeaseHeld as error:
        return Finding(State.WARN, _sentence(error), error.hint or "")
    except SeicheError as error:
        return Finding(State.FAIL, _sentence(error), error.hint or "")
    if sight.is_current:
        return Finding(State.OK, f"{shown} opens and is free")
    what = "be migrated" if sight.format else "get its tables"
    return Finding(State.OK, f"{shown} opens and is free, and will {what} at the next start")


CHECKS: tuple[tuple[str, Check], ...] = (
    ("python", check_python),
    ("java", check_java),
    ("spark", check_spark),
    ("archive", check_archive),
    ("packages", check_packages),
    ("memory", check_memory),
    ("disk", check_disk),
    ("data folder", check_folder),
    ("metadata", check_metadata),
)


def _existing(path: Path) -> Path:
    """The path, or its closest ancestor that exists."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _size(size: float) -> str:
    return f"{size / (1 << 30):.1f} GiB"


def _sentence(error: SeicheError) -> str:
    return f"{error.message}. {error.detail}" if error.detail else error.message
