"""The archive of Java classes from which Spark starts sooner.

A Java process that starts Spark and answers its first queries spends a good part of that on finding, reading and
checking twenty thousand classes in three hundred jars. Java can keep them in a file, in the form in which it holds them
in memory, and map that file at the next start. `seiche prepare` makes one, and every engine uses the one that fits.

This module knows where it lies and which one fits; the archive belongs to an installation of Spark and goes with its
environment. Java checks it against its jars and itself once more, and starts without it where it does not fit.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

FOLDER = Path(sys.prefix) / "share" / "seiche"


def fitting(environ: Mapping[str, str] = os.environ, folder: Path = FOLDER) -> Path | None:
    """Where the archive for the Java and the Spark of these surroundings is or would be, None if one is missing."""
    java, jars = _java(environ), _jars(environ)
    if java is None or jars is None:
        return None
    known = hashlib.sha256()
    for file in (java, *_libraries(java), *sorted(jars.glob("*.jar"))):
        status = file.stat()
        # Whole seconds, which is what an image of a container keeps, and what Java compares.
        known.update(f"{file} {status.st_size} {int(status.st_mtime)}\n".encode())
    return folder / f"classes-{known.hexdigest()[:16]}.jsa"


def java_options(folder: Path = FOLDER) -> tuple[str, ...]:
    """What to tell a Java process so that it starts from the archive. Nothing if there is none."""
    archive = fitting(folder=folder)
    if archive is None or not archive.is_file():
        return ()
    # Where it does not fit after all, such as with a folder of settings on the class path, that is no user's business.
    return (f'"-XX:SharedArchiveFile={archive}"', "-Xlog:cds*=off")


def making_options(archive: Path) -> tuple[str, ...]:
    """What to tell a Java process so that it writes the archive when it ends."""
    return (f'"-XX:ArchiveClassesAtExit={archive}"', "-Xlog:cds*=off")


def java_program(environ: Mapping[str, str]) -> str | None:
    """The program that Spark runs, be it there or not: JAVA_HOME's if that is set, else the one on the PATH."""
    home = environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environ.get("PATH"))


def _java(environ: Mapping[str, str]) -> Path | None:
    found = java_program(environ)
    return Path(found).resolve() if found and Path(found).is_file() else None


def _libraries(java: Path) -> Iterator[Path]:
    """What an update of the same Java replaces."""
    library = java.parent.parent / "lib" / "server" / "libjvm.so"
    if library.is_file():
        yield library


def _jars(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("SPARK_HOME")
    if home is None:
        package = importlib.util.find_spec("pyspark")
        home = package.submodule_search_locations[0] if package and package.submodule_search_locations else None
    jars = Path(home) / "jars" if home else None
    return jars if jars and jars.is_dir() else None
