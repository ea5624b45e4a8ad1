"""Every setting of Seiche, once: its name, unit, default, range and meaning.

A `Config` is a frozen value with one attribute a setting. `Config.load` reads it from, each overruling the ones
before it:

    default  <  file  <  ALTER SYSTEM  <  environment  <  command line

where "file" is `seiche.toml` in the data folder, then the file given by `--config`, and the environment's names
are `SEICHE_<NAME>`. The config remembers for each value where it came from. A wrong value or name is a
`ConfigError` that tells the place it was read from and what would be allowed there.

The settings marked `mutable` are the system parameters: ALTER SYSTEM changes them while the engine runs. What it
stores is the metadata database's business; `with_stored` and `with_parameter` apply it.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from seiche.errors import ConfigError, InvalidParameter, ObjectNotReady, SeicheError, UndefinedObject, nearest

FILE_NAME = "seiche.toml"
ENVIRONMENT_PREFIX = "SEICHE_"

Value = int | float | str | Path


class Layer(IntEnum):
    """Where a value came from, weakest first."""

    DEFAULT = 0
    FILE = 1
    STORED = 2
    ENVIRONMENT = 3
    COMMAND_LINE = 4
    CODE = 5


@dataclass(frozen=True, slots=True)
class Origin:
    layer: Layer
    place: str  # as a user would name it: a path, a variable, an option

    def __str__(self) -> str:
        return self.place


DEFAULT = Origin(Layer.DEFAULT, "default")
STORED = Origin(Layer.STORED, "ALTER SYSTEM")
CODE = Origin(Layer.CODE, "code")


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of a setting. Its type is that of its default."""

    name: str
    default: Value
    meaning: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    pattern: str = ""
    allowed: str = ""  # the pattern in words
    mutable: bool = False

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def expects(self) -> str:
        """The allowed values in words, as they end the sentence "Allowed is ..."."""
        if self.allowed:
            return self.allowed
        match self.default:
            case int():
                noun = "an integer"
            case float():
                noun = "a number"
            case Path():
                return "a path"
            case _:
                return "a text"
        if self.minimum is not None and self.maximum is not None:
            noun += f" from {self.minimum:g} to {self.maximum:.15g}"
        elif self.minimum is not None:
            noun += f" of at least {self.minimum:g}"
        return f"{noun} ({self.unit})" if self.unit else noun

    def parse(self, raw: object) -> Value:
        """The value that a text, or a value as TOML has them, stands for. Raises ValueError."""
        match self.default:
            case int():
                value: Value = _integer(raw)
            case float():
                value = _number(raw)
            case Path():
                if not isinstance(raw, (str, Path)) or not str(raw):
                    raise ValueError
                value = Path(raw).expanduser()
            case str():
                if not isinstance(raw, str):
                    raise ValueError
                value = raw.strip()
        if isinstance(value, (int, float)) and (
            (self.minimum is not None and not value >= self.minimum)
            or (self.maximum is not None and not value <= self.maximum)
        ):
            raise ValueError
        if self.pattern and not re.fullmatch(self.pattern, str(value)):
            raise ValueError
        return value


def _integer(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, (int, str)):
        raise ValueError
    return int(raw)


def _number(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise ValueError
    return float(raw)


def _setting(default: Any, meaning: str, **rest: Any) -> Any:
    return field(default=default, metadata={"meaning": meaning, **rest})


_MASTER = r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[.+\]|spark://.+|k8s://.+|yarn"
_METADATA = r"(sqlite:///.+|postgresql(\+psycopg)?://.+)?"


@dataclass(frozen=True, slots=True)
class Config:
    """One value of every setting. Also made in code, `Config(barrier_interval_ms=200)`; checked either way."""

    data_dir: Path = _setting(  # noqa: RUF009  (it makes a field)
        Path("seiche-data"), "folder of the database: segments, base tables, metadata"
    )
    metadata: str = _setting(
        "",
        "address of the metadata database; empty: the file meta.db in data_dir",
        pattern=_METADATA,
        allowed="sqlite:///path or postgresql://user:password@host:port/database",
    )
    master: str = _setting(
        "local[*]",
        "Spark's master address",
        pattern=_MASTER,
        allowed="local[*], local[4], spark://host:port, yarn or k8s://address",
    )
    driver_memory: str = _setting(
        "4g",
        "largest heap of the Spark driver, which is all of Spark with a local master",
        pattern=r"[1-9]\d*[kmgtKMGT]",
        allowed="a size as Spark spells it: 512m, 4g",
    )
    spark_niceness: int = _setting(
        10,
        "how far a local Spark steps back for the epochs beside it that need none, as `nice` has it; 0: not at all",
        unit="steps of niceness",
        minimum=0,
        maximum=19,
    )
    parallel_jobs: int = _setting(
        4, "most tables and views that an epoch brings up to date side by side", unit="jobs", minimum=1, maximum=64
    )
    shuffle_partitions: int = _setting(
        0, "partitions of an exchange; 0: the number of cores", unit="partitions", minimum=0, maximum=100_000
    )
    barrier_interval_ms: int = _setting(
        1000,
        "time between two barriers while changes arrive; a waiting statement brings the barrier forward",
        unit="milliseconds",
        minimum=10,
        maximum=600_000,
        mutable=True,
    )
    checkpoint_frequency: int = _setting(
        1,
        "every how many barriers the epoch is made durable",
        unit="barriers",
        minimum=1,
        maximum=10_000,
        mutable=True,
    )
    inline_rows_max: int = _setting(
        50_000,
        "most changes of one view and epoch that are handled on the driver instead of by executors",
        unit="rows",
        minimum=0,
        maximum=10_000_000,
        mutable=True,
    )
    nearby_rows_max: int = _setting(
        200_000,
        "most rows of a relation that few changes of others are joined with on the driver, in memory",
        unit="rows",
        minimum=0,
        maximum=10_000_000,
    )
    nearby_bytes_max: int = _setting(
        32 * 1024 * 1024,
        "most bytes of larger relations that the driver reads to look rows up for few changes or for a query by key",
        unit="bytes",
        minimum=0,
        maximum=2 * 1024 * 1024 * 1024,
    )
    lookup_memory_bytes: int = _setting(
        2 * 1024 * 1024 * 1024,
        "most bytes of larger relations that the driver remembers, once it has read them to look rows up",
        unit="bytes",
        minimum=0,
        maximum=1024 * 1024 * 1024 * 1024,
    )
    technique_margin: float = _setting(
        0.8,
        "a part of a view leaves its usual technique for an epoch when another promises less than this share of its "
        "time; 0: never",
        unit="of the usual one's estimate",
        minimum=0.0,
        maximum=1e9,
    )
    inline_bytes_max: int = _setting(
        64 * 1024 * 1024,
        "most bytes of changes of one view and epoch that are handled on the driver",
        unit="bytes",
        minimum=0,
        maximum=2 * 1024 * 1024 * 1024,
        mutable=True,
    )
    recursion_rounds_max: int = _setting(
        1_000,
        "most rounds of a recursive query before it is taken for endless and ended",
        unit="rounds",
        minimum=1,
        maximum=1_000_000,
        mutable=True,
    )
    recursion_rows_max: int = _setting(
        10_000_000,
        "most rows of a recursive query before it is taken for endless and ended",
        unit="rows",
        minimum=1,
        maximum=1_000_000_000_000,
        mutable=True,
    )
    segments_max_per_relation: int = _setting(
        16,
        "segments of a relation before the small ones are joined",
        unit="segments",
        minimum=2,
        maximum=10_000,
        mutable=True,
    )
    fold_ratio: float = _setting(
        0.2,
        "share of the base that the segments may reach before a fold",
        unit="rows of segments for each row of the base",
        minimum=0.001,
        maximum=100.0,
        mutable=True,
    )
    fold_min_rows: int = _setting(
        50_000,
        "rows in segments below which a relation is never folded",
        unit="rows",
        minimum=0,
        maximum=1_000_000_000_000,
        mutable=True,
    )
    retention_ms: int = _setting(
        0,
        "how far back a relation can be read as of an earlier time",
        unit="milliseconds",
        minimum=0,
        maximum=10 * 365 * 86_400_000,
        mutable=True,
    )
    max_concurrent_creating_streaming_jobs: int = _setting(
        4,
        "most views that are created at once, others wait; 0: any number",
        unit="jobs",
        minimum=0,
        maximum=1_000,
        mutable=True,
    )
    pause_on_next_bootstrap: str = _setting(
        "false",
        "whether the next start leaves the database paused until RESUME",
        pattern="true|false",
        allowed="true or false",
        mutable=True,
    )
    lease_ttl_ms: int = _setting(
        10_000,
        "time after which another process may take over a database whose holder is silent",
        unit="milliseconds",
        minimum=1_000,
        maximum=3_600_000,
    )
    log_level: str = _setting(
        "warning",
        "least severity of the messages that are logged",
        pattern="debug|info|warning|error",
        allowed="debug, info, warning or error",
        mutable=True,
    )
    spark_conf: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    origins: Mapping[str, Origin] = field(default_factory=lambda: MappingProxyType({}), compare=False, repr=False)

    def __post_init__(self) -> None:
        for setting in SETTINGS:
            value = _checked(setting, getattr(self, setting.name), self.origin(setting.name))
            object.__setattr__(self, setting.name, value)  # a Path given as text becomes one
        for key in self.spark_conf:
            _check_spark_key(key, self.origin(f"spark_conf.{key}"))

    @staticmethod
    def load(
        *,
        arguments: Mapping[str, object] | None = None,
        file: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Config:
        """Reads all sources. `arguments` are the command line's or a caller's, by setting name; those of Spark are
        named `spark_conf.<key>`, or come together as a mapping `spark_conf`."""
        environ = os.environ if environ is None else environ
        by_name = {name: (raw, _option(name)) for name, raw in _spread_out(arguments or {})}
        given = dict(_from_file(file, must_exist=True)) if file is not None else {}
        given |= dict(_from_environment(environ))
        given |= by_name
        # The data folder has to be known before the file in it can be read.
        raw, origin = given.get("data_dir", (SETTING["data_dir"].default, DEFAULT))
        folder = Path(str(_checked(SETTING["data_dir"], raw, origin)))
        in_folder = dict(_from_file(folder / FILE_NAME, must_exist=False))
        if "data_dir" in in_folder:
            raise ConfigError(
                f'setting "data_dir" cannot be set in "{folder / FILE_NAME}"',
                detail="That file is found through data_dir.",
                hint="Remove the line, and use --data-dir, SEICHE_DATA_DIR or a file given by --config.",
            )
        return _build(Config(), in_folder | given)

    def origin(self, name: str) -> Origin:
        """Where the value of a setting, or of one `spark_conf.<key>`, came from."""
        if name in self.origins:
            return self.origins[name]
        if name in SETTING and getattr(self, name) == SETTING[name].default:
            return DEFAULT
        return CODE

    @property
    def metadata_address(self) -> str:
        """The metadata database's address, with the default filled in."""
        return self.metadata or f"sqlite:///{self.data_dir.absolute() / 'meta.db'}"

    def items(self) -> Iterator[tuple[str, Value, Origin, str]]:
        """Name, value in effect, origin and meaning of each setting, passed-through Spark settings last.

        For display: the password in the metadata database's address is left out.
        """
        for setting in SETTINGS:
            value = getattr(self, setting.name)
            if setting.name == "metadata":
                value = re.sub(r"(://[^/@:]*):[^@]*@", r"\1:***@", self.metadata_address)
            yield setting.name, value, self.origin(setting.name), setting.meaning
        for key, value in sorted(self.spark_conf.items()):
            name = f"spark_conf.{key}"
            yield name, value, self.origin(name), "handed to Spark as it is"

    def with_stored(self, stored: Mapping[str, str]) -> Config:
        """This config with what ALTER SYSTEM stored, except where environment or command line say otherwise."""
        given: dict[str, tuple[object, Origin]] = {}
        for name, raw in stored.items():
            if name not in SETTING or not SETTING[name].mutable:
                raise ConfigError(
                    f'stored system parameter "{name}" is not known',
                    detail="ALTER SYSTEM of another version of Seiche stored it in the metadata database.",
                    hint="Start this database with the version that wrote it and ALTER SYSTEM SET it TO DEFAULT.",
                )
            if self.origin(name).layer < STORED.layer:
                given[name] = (raw, STORED)
        return _build(self, given)

    def with_parameter(self, name: str, raw: str | None) -> Config:
        """This config with one system parameter changed by ALTER SYSTEM; None: its default."""
        setting = system_parameter(name)
        given = (setting.default, DEFAULT) if raw is None else (raw, STORED)
        return _build(self, {name: given}, error=InvalidParameter)


def parameter_name(name: str, raw: str | None) -> str:
    """The setting behind a system parameter of RisingWave that has another name here; other names stay."""
    if name != "time_travel_retention_ms":
        return name
    if raw is not None and raw.strip().isdecimal() and int(raw) < TIME_TRAVEL_MIN_MS:
        raise InvalidParameter(
            f"{name} cannot be less than {TIME_TRAVEL_MIN_MS}", hint="The setting retention_ms may be shorter."
        )
    return "retention_ms"


def system_parameter(name: str) -> Setting:
    """The setting that ALTER SYSTEM SET may change under this name."""
    setting = SETTING.get(name)
    if setting is None:
        raise UndefinedObject(
            f'unrecognized system parameter "{name}"',
            hint=nearest(name, (s.name for s in SYSTEM_PARAMETERS)) or "SHOW PARAMETERS lists the system parameters.",
        )
    if not setting.mutable:
        raise ObjectNotReady(
            f'setting "{name}" cannot be changed while the engine runs',
            hint=f"Set it in {FILE_NAME} or as {setting.variable}, and start again.",
        )
    return setting


def unknown_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Environment variables that look like settings and name none."""
    known = {s.variable for s in SETTINGS} | _OTHER_VARIABLES
    return tuple(sorted(v for v in environ if v.startswith(ENVIRONMENT_PREFIX) and v not in known))


TIME_TRAVEL_MIN_MS = 600_000
SETTINGS: tuple[Setting, ...] = tuple(
    Setting(name=f.name, default=cast(Value, f.default), **f.metadata)
    for f in dataclasses.fields(Config)
    if "meaning" in f.metadata
)
SETTING: Mapping[str, Setting] = MappingProxyType({s.name: s for s in SETTINGS})
SYSTEM_PARAMETERS: tuple[Setting, ...] = tuple(s for s in SETTINGS if s.mutable)

_OTHER_VARIABLES = frozenset({"SEICHE_DEBUG", "SEICHE_HISTORY", "SEICHE_SPARK_CONF"})

# Keys that have a setting of their own, or on whose value the answers of queries depend.
_SPARK_TAKEN = {
    "spark.master": 'Use the setting "master".',
    "spark.driver.memory": 'Use the setting "driver_memory".',
    "spark.sql.shuffle.partitions": 'Use the setting "shuffle_partitions".',
    "spark.sql.ansi.enabled": "It is always true: errors and overflows follow PostgreSQL.",
    "spark.sql.session.timeZone": "It is always UTC: rows are stored that way.",
}


def _option(name: str) -> Origin:
    if name in ("data_dir", "metadata", "master"):
        return Origin(Layer.COMMAND_LINE, f"--{name.replace('_', '-')}")
    return Origin(Layer.COMMAND_LINE, f"--set {name}")


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, tuple[object, Origin]]]:
    for setting in SETTINGS:
        if setting.variable in environ:
            yield setting.name, (environ[setting.variable], Origin(Layer.ENVIRONMENT, setting.variable))
    variable = "SEICHE_SPARK_CONF"
    for pair in environ.get(variable, "").split(";"):
        if not pair.strip():
            continue
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(
                f'setting "spark_conf" has no value for "{pair.strip()}"',
                detail=f"It was read from the environment variable {variable}.",
                hint=f'Write it as {variable}="spark.key=value; spark.other=value".',
            )
        yield f"spark_conf.{key.strip()}", (value.strip(), Origin(Layer.ENVIRONMENT, variable))


def _from_file(path: Path, *, must_exist: bool) -> Iterator[tuple[str, tuple[object, Origin]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        if not must_exist:
            return
        raise ConfigError(f'file "{path}" does not exist', hint="Check the path given by --config.") from None
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigError(f'file "{path}" cannot be read', detail=f"{cause}.") from cause
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as cause:
        raise ConfigError(
            f'file "{path}" is not valid TOML',
            detail=f"{cause}.",
            hint='A setting is a line such as: barrier_interval_ms = 1000, a text is in quotes: master = "local[2]".',
        ) from cause
    origin = Origin(Layer.FILE, str(path))
    for name, raw in content.items():
        if name == "spark_conf" and isinstance(raw, dict):
            yield from ((f"spark_conf.{key}", (value, origin)) for key, value in _flat(raw))
        else:
            yield name, (raw, origin)


def _spread_out(arguments: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, raw in arguments.items():
        if name == "spark_conf" and isinstance(raw, Mapping):
            yield from ((f"spark_conf.{key}", value) for key, value in raw.items())
        else:
            yield name, raw


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Leaves of nested tables under dotted keys: TOML reads a bare `spark.executor.memory` as three levels."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _build(start: Config, given: Mapping[str, tuple[object, Origin]], error: type[SeicheError] = ConfigError) -> Config:
    values: dict[str, Any] = {}
    spark_conf = dict(start.spark_conf)
    origins = dict(start.origins)
    for name, (raw, origin) in given.items():
        head, _, key = name.partition(".")
        if head == "spark_conf" and key:
            _check_spark_key(key, origin)
            spark_conf[key] = str(raw).lower() if isinstance(raw, bool) else str(raw)
        elif name in SETTING:
            values[name] = _checked(SETTING[name], raw, origin, error)
        else:
            hint = nearest(name, SETTING) or "`seiche config` lists the settings."
            if head in ("spark", "spark_conf"):
                hint = "Settings of Spark are written spark_conf.spark.key, such as spark_conf.spark.executor.memory."
            raise ConfigError(
                f'setting "{name}" does not exist', detail=f"It was read from {_place(origin)}.", hint=hint
            )
        origins[name] = origin
    return dataclasses.replace(
        start, **values, spark_conf=MappingProxyType(spark_conf), origins=MappingProxyType(origins)
    )


def _checked(setting: Setting, raw: object, origin: Origin, error: type[SeicheError] = ConfigError) -> Value:
    try:
        return setting.parse(raw)
    except ValueError:
        raise error(
            f'setting "{setting.name}" cannot be "{raw}"',
            detail=f"The value was read from {_place(origin)}. Allowed is {setting.expects}.",
            hint=_remedy(setting, origin),
        ) from None


def _check_spark_key(key: str, origin: Origin) -> None:
    if key in _SPARK_TAKEN:
        raise ConfigError(
            f'Spark setting "{key}" cannot be passed through',
            detail=f"It was read from {_place(origin)}.",
            hint=_SPARK_TAKEN[key],
        )
    if not key.startswith("spark."):
        raise ConfigError(
            f'Spark setting "{key}" does not begin with "spark."',
            detail=f"It was read from {_place(origin)}.",
            hint=f'Write it in full, such as spark_conf.spark.{key.removeprefix(".")} = "...".',
        )


def _place(origin: Origin) -> str:
    match origin.layer:
        case Layer.FILE:
            return f'the file "{origin.place}"'
        case Layer.ENVIRONMENT:
            return f"the environment variable {origin.place}"
        case Layer.COMMAND_LINE:
            return f"the command line ({origin.place})"
        case Layer.CODE:
            return "the arguments of Config"
        case Layer.DEFAULT | Layer.STORED:
            return origin.place


def _remedy(setting: Setting, origin: Origin) -> str:
    default = f'"{setting.default}"' if isinstance(setting.default, str) else str(setting.default)
    match origin.layer:
        case Layer.FILE:
            return f"Correct the line or remove it for the default, {default}."
        case Layer.ENVIRONMENT:
            return f"Correct the variable or unset it for the default, {default}."
        case Layer.STORED:
            return f"Type ALTER SYSTEM SET {setting.name} TO {default}, or TO DEFAULT."
        case Layer.DEFAULT | Layer.COMMAND_LINE | Layer.CODE:
            return f"Leave it out for the default, {default}."
