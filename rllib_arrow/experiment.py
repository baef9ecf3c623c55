"""Reads a tuned example strictly: what is misspelt is refused, never ignored."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllib_arrow import ALGORITHMS
from rllib_arrow.algorithms.continual_config import PAPER_SEEDS
from rllib_arrow.drafts import Draft, ExperimentError, override, read_draft
from rllib_arrow.seeding import derive_seed
from rllib_arrow.settings import (
    SettingError,
    check_settings,
    examples,
    is_space,
    nearest,
    settable,
    to_number,
)

ENVIRONMENTS = ("Continual",)
STOP_KEYS = ("training_iteration", "time_total_s", "frames")

# Every key of an experiment with its default.
BLOCK: dict[str, Any] = {
    "run": "",
    "env": "Continual",
    "description": "",
    "stop": {},
    "checkpoint_config": {},
    "num_samples": 1,
    "max_failures": 2,
    "config": {},
}
CHECKPOINTS = {
    "checkpoint_frequency": 10,
    "checkpoint_at_end": True,
    "num_to_keep": 2,
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
    draft = read_draft(Path(file))
    for text in settings:
        override(draft, text, "--set", BLOCK)
    for text in stop:
        override(draft, f"stop.{text}", "--stop", BLOCK)
    if num_samples is not None:
        override(draft, f"num_samples={num_samples}", "--num-samples", BLOCK)
    try:
        return _check(draft)
    except SettingError as error:
        origin = draft.origin_of(error.key)
        raise ExperimentError(f"{origin}: {error}") from error


def _check(draft: Draft) -> Experiment:
    block = {**copy.deepcopy(BLOCK), **draft.block}
    for key in block:
        if key not in BLOCK:
            hint = nearest(key, [*BLOCK, "extends"])
            raise SettingError(key, block[key], f"unknown key, {hint}")
    run, env = block["run"], block["env"]
    if not run:
        raise SettingError("run", run, f"is missing, {nearest('', ALGORITHMS)}")
    if run not in list(ALGORITHMS):
        raise SettingError("run", run, f"unknown algorithm, {nearest(run, ALGORITHMS)}")
    if env not in ENVIRONMENTS:
        hint = nearest(env, ENVIRONMENTS)
        raise SettingError("env", env, f"unknown environment, {hint}")
    _require(block, "description", isinstance(block["description"], str), "a text")
    for key in ("stop", "checkpoint_config", "config"):
        _require(block, key, isinstance(block[key], dict), "a mapping")
    for key, least in (("num_samples", 1), ("max_failures", 0)):
        fits = type(block[key]) is int and block[key] >= least
        _require(block, key, fits, f"a whole number of at least {least}")
    block["stop"] = _check_stop(block["stop"])
    block["checkpoint_config"] = _check_checkpoints(block["checkpoint_config"])
    block["config"] = _check_config(run, block)
    return Experiment(file=draft.file, name=draft.name, **block)


def _require(block: dict[str, Any], key: str, holds: bool, expected: str) -> None:
    if not holds:
        raise SettingError(key, block[key], f"must be {expected}")


def _check_stop(stop: dict[str, Any]) -> dict[str, float]:
    for key, value in stop.items():
        if key not in STOP_KEYS:
            problem = f"unknown criterion, {nearest(key, STOP_KEYS)}"
            raise SettingError(f"stop.{key}", value, problem)
        number = to_number(value)
        if number is None or number <= 0:
            raise SettingError(f"stop.{key}", value, "must be a number above 0")
    return {key: to_number(value) for key, value in stop.items()}


def _check_checkpoints(given: dict[str, Any]) -> dict[str, Any]:
    checked = check_settings(given, CHECKPOINTS, "checkpoint_config")
    # Of two checkpoints one is whole and known to Tune, whenever the run is killed.
    for key, least in (("checkpoint_frequency", 0), ("num_to_keep", 2)):
        if key in checked and (is_space(checked[key]) or checked[key] < least):
            problem = f"must be a whole number of at least {least}"
            raise SettingError(f"checkpoint_config.{key}", given[key], problem)
    return {**CHECKPOINTS, **checked}


def _check_config(run: str, block: dict[str, Any]) -> dict[str, Any]:
    algorithm = ALGORITHMS[run]
    config = check_settings(block["config"], settable(algorithm.get_default_config()))
    if "seed" in config and block["num_samples"] > 1:
        problem = f"num_samples ({block['num_samples']}) brings its own seeds: drop one"
        raise SettingError("config.seed", config["seed"], problem)
    for plain in examples(config):
        _check_together(algorithm, {"env": block["env"], **plain})
    return config


def _check_together(algorithm: Any, plain: dict[str, Any]) -> None:
    """Lets the algorithm itself judge the settings, and finds the one it dislikes."""
    problem = _problem_with(algorithm, plain)
    if not problem:
        return
    path, value = _culprit(algorithm, plain)
    raise SettingError(path, value, problem)


def _problem_with(algorithm: Any, plain: dict[str, Any]) -> str:
    if plain.get("num_gpus_per_learner") == "auto":
        plain = {**plain, "num_gpus_per_learner": 0}
    try:
        algorithm.get_default_config().update_from_dict(plain).validate()
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
        return " ".join(str(error).split())
    return ""


def _culprit(algorithm: Any, plain: dict[str, Any]) -> tuple[str, Any]:
    """Returns the setting without which the others would do, as path and value."""
    for key, value in plain.items():
        for name in value if isinstance(value, dict) else ():
            inner = {k: v for k, v in value.items() if k != name}
            if not _problem_with(algorithm, {**plain, key: inner}):
                return f"config.{key}.{name}", value[name]
        rest = {k: v for k, v in plain.items() if k != key}
        if not _problem_with(algorithm, rest):
            return f"config.{key}", value
    # Nothing works without a curriculum, so leaving it out cannot clear it.
    curriculum = plain.get("curriculum", {})
    if _problem_with(algorithm, {"curriculum": curriculum}):
        return "config.curriculum", curriculum
    return "config", plain


def sample_seeds(num_samples: int) -> list[int]:
    """Returns the seeds of so many samples: the paper's five, then derived ones."""
    more = (derive_seed(PAPER_SEEDS[0], "sample", i) for i in range(5, num_samples))
    return [*PAPER_SEEDS[:num_samples], *more]
