from __future__ import annotations

from pathlib import Path

import pytest

from seiche.config import SETTINGS, SYSTEM_PARAMETERS, Config, Layer, system_parameter, unknown_variables
from seiche.errors import ConfigError, InvalidParameter, ObjectNotReady, SeicheError, UndefinedObject


def load(tmp_path: Path, **sources: object) -> Config:
    arguments = {"data_dir": str(tmp_path)} | dict(sources.pop("arguments", {}))  # type: ignore[call-overload]
    return Config.load(arguments=arguments, environ=sources.pop("environ", {}), **sources)  # type: ignore[arg-type]


def test_every_setting_has_a_meaning_and_an_allowed_default() -> None:
    for setting in SETTINGS:
        assert setting.meaning
        assert setting.parse(setting.default) == setting.default


def test_numbers_name_their_unit() -> None:
    for setting in SETTINGS:
        if isinstance(setting.default, (int, float)):
            assert setting.unit, setting.name


def test_defaults_hold_where_nothing_is_given(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert config.barrier_interval_ms == 1000
    assert str(config.origin("barrier_interval_ms")) == "default"


def test_each_source_overrules_the_ones_before_it(tmp_path: Path) -> None:
    (tmp_path / "seiche.toml").write_text("barrier_interval_ms = 100\nfold_min_rows = 100\nretention_ms = 100\n")
    given = tmp_path / "given.toml"
    given.write_text("fold_min_rows = 200\nretention_ms = 200\ncheckpoint_frequency = 200\n")
    config = load(
        tmp_path,
        file=given,
        environ={"SEICHE_RETENTION_MS": "300", "SEICHE_CHECKPOINT_FREQUENCY": "300"},
        arguments={"checkpoint_frequency": "400"},
    )
    assert (config.barrier_interval_ms, config.fold_min_rows) == (100, 200)
    assert (config.retention_ms, config.checkpoint_frequency) == (300, 400)
    assert str(config.origin("barrier_interval_ms")) == str(tmp_path / "seiche.toml")
    assert str(config.origin("fold_min_rows")) == str(given)
    assert str(config.origin("retention_ms")) == "SEICHE_RETENTION_MS"
    assert str(config.origin("checkpoint_frequency")) == "--set checkpoint_frequency"
    assert str(config.origin("data_dir")) == "--data-dir"


def test_metadata_lives_in_the_data_folder_unless_an_address_is_given(tmp_path: Path) -> None:
    assert load(tmp_path).metadata_address == f"sqlite:///{tmp_path}/meta.db"
    address = "postgresql://harbour@localhost/seiche"
    assert load(tmp_path, arguments={"metadata": address}).metadata_address == address


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("barrier_interval_ms", "soon"),
        ("barrier_interval_ms", "0"),
        ("barrier_interval_ms", "1.5"),
        ("barrier_interval_ms", True),
        ("fold_ratio", "nan"),
        ("fold_ratio", "-1"),
        ("master", "harbour"),
        ("metadata", "mysql://host/db"),
        ("driver_memory", "lots"),
        ("log_level", "loud"),
        ("data_dir", ""),
    ],
)
def test_a_value_out_of_range_is_refused(tmp_path: Path, name: str, raw: object) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, arguments={name: raw})
    assert caught.value.message == f'setting "{name}" cannot be "{raw}"'
    assert "the command line" in str(caught.value.detail)
    assert caught.value.hint


def test_a_wrong_value_names_its_source_the_range_and_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, environ={"SEICHE_BARRIER_INTERVAL_MS": "soon"})
    assert str(caught.value).splitlines() == [
        'setting "barrier_interval_ms" cannot be "soon"',
        (
            "DETAIL: The value was read from the environment variable SEICHE_BARRIER_INTERVAL_MS. "
            "Allowed is an integer from 10 to 600000 (milliseconds)."
        ),
        "HINT: Correct the variable or unset it for the default, 1000.",
    ]


def test_an_unknown_key_in_the_file_suggests_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "seiche.toml").write_text("barrier_interval = 100\n")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert caught.value.message == 'setting "barrier_interval" does not exist'
    assert str(tmp_path / "seiche.toml") in str(caught.value.detail)
    assert caught.value.hint == 'Perhaps you meant "barrier_interval_ms".'


def test_a_broken_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "seiche.toml").write_text("barrier_interval_ms 100\n")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        load(tmp_path)


def test_a_file_that_was_asked_for_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load(tmp_path, file=tmp_path / "none.toml")


def test_the_folders_own_file_cannot_move_the_folder(tmp_path: Path) -> None:
    (tmp_path / "seiche.toml").write_text('data_dir = "elsewhere"\n')
    with pytest.raises(ConfigError, match="cannot be set in"):
        load(tmp_path)


def test_a_given_file_may_name_the_data_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "seiche.toml").write_text("retention_ms = 5\n")
    given = tmp_path / "given.toml"
    given.write_text(f'data_dir = "{tmp_path}/data"\n')
    assert Config.load(file=given, environ={}).retention_ms == 5


def test_spark_settings_pass_through_from_every_source(tmp_path: Path) -> None:
    (tmp_path / "seiche.toml").write_text("[spark_conf]\nspark.executor.cores = 2\nspark.ui.enabled = false\n")
    config = load(
        tmp_path,
        environ={"SEICHE_SPARK_CONF": "spark.executor.memory=4g; spark.executor.cores=3"},
        arguments={"spark_conf.spark.app.name": "harbour", "spark_conf": {"spark.task.cpus": 1}},
    )
    assert dict(config.spark_conf) == {
        "spark.executor.cores": "3",
        "spark.ui.enabled": "false",
        "spark.executor.memory": "4g",
        "spark.app.name": "harbour",
        "spark.task.cpus": "1",
    }
    assert str(config.origin("spark_conf.spark.executor.cores")) == "SEICHE_SPARK_CONF"


@pytest.mark.parametrize("key", ["spark.sql.ansi.enabled", "spark.master", "executor.memory"])
def test_spark_settings_that_answers_depend_on_are_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, arguments={f"spark_conf.{key}": "x"})
    assert caught.value.hint


@pytest.mark.parametrize("name", ["spark.executor.memory", "spark_conf"])
def test_a_spark_setting_in_another_form_is_told_the_right_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, arguments={name: "4g"})
    assert "spark_conf.spark." in str(caught.value.hint)


def test_a_config_made_in_code_is_checked_too() -> None:
    assert str(Config(retention_ms=5).origin("retention_ms")) == "code"
    assert Config(data_dir="harbour").data_dir == Path("harbour")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="barrier_interval_ms"):
        Config(barrier_interval_ms=1)


def test_stored_parameters_overrule_files_but_not_environment(tmp_path: Path) -> None:
    (tmp_path / "seiche.toml").write_text("retention_ms = 5\nfold_min_rows = 5\n")
    config = load(tmp_path, environ={"SEICHE_FOLD_MIN_ROWS": "6"})
    stored = config.with_stored({"retention_ms": "7", "fold_min_rows": "7"})
    assert (stored.retention_ms, stored.fold_min_rows) == (7, 6)
    assert stored.origin("retention_ms").layer is Layer.STORED


def test_a_stored_parameter_of_another_version_is_named() -> None:
    with pytest.raises(ConfigError, match='stored system parameter "tide_table" is not known'):
        Config().with_stored({"tide_table": "1"})


def test_alter_system_changes_and_resets_a_parameter_while_running() -> None:
    changed = Config().with_parameter("barrier_interval_ms", "250")
    assert changed.barrier_interval_ms == 250
    assert str(changed.origin("barrier_interval_ms")) == "ALTER SYSTEM"
    reset = changed.with_parameter("barrier_interval_ms", None)
    assert reset.barrier_interval_ms == 1000
    assert str(reset.origin("barrier_interval_ms")) == "default"


@pytest.mark.parametrize(
    ("name", "raw", "error"),
    [
        ("barrier_interval_ms", "never", InvalidParameter),
        ("barier_interval_ms", "100", UndefinedObject),
        ("data_dir", "elsewhere", ObjectNotReady),
    ],
)
def test_alter_system_refuses_with_the_fitting_error(name: str, raw: str, error: type[SeicheError]) -> None:
    with pytest.raises(error) as caught:
        Config().with_parameter(name, raw)
    assert caught.value.hint


def test_system_parameters_are_the_mutable_settings() -> None:
    names = {s.name for s in SYSTEM_PARAMETERS}
    assert {"barrier_interval_ms", "checkpoint_frequency"} <= names
    assert "data_dir" not in names
    assert all(system_parameter(name).mutable for name in names)


def test_misspelt_variables_are_found() -> None:
    environ = {"SEICHE_MASTER": "x", "SEICHE_MASTRE": "x", "SEICHE_DEBUG": "1", "PATH": "x"}
    assert unknown_variables(environ) == ("SEICHE_MASTRE",)
