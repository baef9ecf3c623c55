"""Reads a tuned example strictly: what is misspelt is refused, never ignored."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllib_arrow import ALGORITHMS, CONTINUAL, algorithm_class, register
from rllib_arrow.errors import UserError, one_line
from rllib_arrow.experiments.yaml_files import MergedBlock, override, read_merged
from rllib_arrow.experiments.yaml_settings import (
    check_settings,
    examples,
    is_space,
    kinds_of,
)
from rllib_arrow.settings import Setting, SettingError, brief, is_number, nearest

STOP_KEYS = ("training_iteration", "time_total_s", "frames")

# Every key of an experiment, and every key of its `checkpoint_config`.
BLOCK = {
    "run": Setting("", types=(str,)),
    "env": Setting(CONTINUAL, types=(str,)),
    "description": Setting("", types=(str,)),
    "stop": Setting({}, types=(dict,)),
    "checkpoint_config": Setting({}, types=(dict,)),
    "num_samples": Setting(1, bounds="[1, 10000]", types=(int,)),
    "max_failures": Setting(2, bounds=">= 0", types=(int,)),
    "config": Setting({}, types=(dict,)),
}
CHECKPOINTS = {
    "checkpoint_frequency": Setting(10, bounds=">= 0", types=(int,)),
    "checkpoint_at_end": Setting(True, types=(bool,)),
    # Of two checkpoints one is whole and known to Tune, whenever the run is killed.
    "num_to_keep": Setting(2, bounds=">= 2", types=(int,)),
}


@dataclass(frozen=True)
class Experiment:
    """One experiment, checked; `config` may hold search spaces as in the file."""

    file: str
    name: str
    run: str
    env: str
    description: str
    stop: dict[str, float]
    checkpoint_config: dict[str, Any]
    num_samples: int
    max_failures: int
    config: dict[str, Any]
    callbacks: tuple[str, ...] = ()  # named on the command line


def read_experiment(
    file: str | Path,
    settings: Iterable[str] = (),
    stop: Iterable[str] = (),
    num_samples: int | None = None,
) -> Experiment:
    """Returns the experiment in the file, with the options of the command line.

    Args:
        file: A YAML file with one experiment, `name: {run, env, stop, config, ...}`.
        settings: Texts `key.path=value`; a path that does not start with a key of the
            experiment is one of `config`.
        stop: Texts `key=value` for the stop criteria.
        num_samples: How many seeds, instead of the file's number.
    """
    merged = read_merged(Path(file))
    for text in settings:
        override(merged, text, "--set", BLOCK)
    for text in stop:
        override(merged, f"stop.{text}", "--stop", BLOCK)
    if num_samples is not None:
        override(merged, f"num_samples={num_samples}", "--num-samples", BLOCK)
    try:
        return _check(merged)
    except SettingError as error:
        setting = f"{error.key} = {brief(error.value)}"
        origin = merged.origin_of(error.key)
        raise UserError(f"{origin}: {setting}: {error.problem}") from error


def _check(merged: MergedBlock) -> Experiment:
    block = _with_defaults(BLOCK) | merged.block
    for key, value in block.items():
        if key not in BLOCK:
            hint = nearest(key, [*BLOCK, "extends"])
            raise SettingError(key, value, f"unknown key, {hint}")
        if problem := BLOCK[key].problem(value):
            raise SettingError(key, value, problem)
    run, env = block["run"], block["env"]
    if run not in ALGORITHMS:
        problem = "unknown algorithm" if run else "is missing"
        raise SettingError("run", run, f"{problem}, {nearest(run, ALGORITHMS)}")
    if env != CONTINUAL:
        _check_env(env)
    _check_stop(block["stop"])
    block["checkpoint_config"] = _check_checkpoints(block["checkpoint_config"])
    block["config"] = _check_config(block)
    return Experiment(file=merged.file, name=merged.name, **block)


def _check_env(env: str) -> None:
    from rllib_arrow.envs.suites import CUSTOM, is_task

    if not is_task(CUSTOM, env):
        hint = f"{nearest(env, [CONTINUAL])} or one that Gymnasium knows"
        raise SettingError("env", env, f"unknown environment, {hint}")


def _with_defaults(kinds: dict[str, Setting]) -> dict[str, Any]:
    return {key: copy.deepcopy(kind.default) for key, kind in kinds.items()}


def _check_stop(stop: dict[str, Any]) -> None:
    for key, value in stop.items():
        if key not in STOP_KEYS:
            problem = f"unknown criterion, {nearest(key, STOP_KEYS)}"
            raise SettingError(f"stop.{key}", value, problem)
        if not is_number(value) or value <= 0:
            raise SettingError(f"stop.{key}", value, "must be a number above 0")


def _check_checkpoints(given: dict[str, Any]) -> dict[str, Any]:
    for key, value in given.items():
        if is_space(value):
            raise SettingError(f"checkpoint_config.{key}", value, "must be one value")
    checked = check_settings(given, CHECKPOINTS, "checkpoint_config")
    return _with_defaults(CHECKPOINTS) | checked


def _check_config(block: dict[str, Any]) -> dict[str, Any]:
    register()  # RLlib looks up the environment
    algorithm = algorithm_class(block["run"])
    config = check_settings(block["config"], kinds_of(algorithm.get_default_config()))
    if "seed" in config and block["num_samples"] > 1:
        problem = f"num_samples ({block['num_samples']}) brings its own seeds: drop one"
        raise SettingError("config.seed", config["seed"], problem)
    for plain in examples(config):
        _check_together(algorithm, {"env": block["env"], **plain})
    return config


def _check_together(algorithm: Any, plain: dict[str, Any]) -> None:
    """Lets the algorithm itself judge the settings, and names the one it refuses."""
    if plain.get("num_gpus_per_learner") == "auto":
        plain = {**plain, "num_gpus_per_learner": 0}
    try:
        algorithm.get_default_config().update_from_dict(plain).validate()
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
        if isinstance(error, SettingError) and error.key.split(".")[0] in plain:
            raise SettingError(
                f"config.{error.key}", error.value, error.problem
            ) from None
        # RLlib's own complaints, and ours about a default, name settings in their text.
        problem = one_line(error)
        named = [key for key in plain if re.search(rf"\b{re.escape(key)}\b", problem)]
        key = max(named, key=len, default="")
        path, value = (f"config.{key}", plain[key]) if key else ("config", plain)
        raise SettingError(path, value, problem) from error
