"""Reads a tuned example strictly: what is misspelt is refused, never ignored."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllib_arrow import ALGORITHMS
from rllib_arrow.algorithms.continual_config import PAPER_SEEDS
from rllib_arrow.drafts import Draft, override, read_draft
from rllib_arrow.errors import UserError
from rllib_arrow.experiments.values import check_settings, examples, is_space, kinds_of
from rllib_arrow.seeding import derive_seed
from rllib_arrow.settings import Setting, SettingError, brief, is_number, nearest

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
        told = f"{error.key} = {brief(error.value)}: {error.problem}"
        raise UserError(f"{draft.origin_of(error.key)}: {told}") from error


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
        if not is_number(value) or value <= 0:
            raise SettingError(f"stop.{key}", value, "must be a number above 0")
    return stop


def _check_checkpoints(given: dict[str, Any]) -> dict[str, Any]:
    for key, value in given.items():
        if is_space(value):
            raise SettingError(f"checkpoint_config.{key}", value, "must be one value")
    defaults = {key: one.default for key, one in CHECKPOINTS.items()}
    return defaults | check_settings(given, CHECKPOINTS, "checkpoint_config")


def _check_config(run: str, block: dict[str, Any]) -> dict[str, Any]:
    algorithm = ALGORITHMS[run]
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
        problem = " ".join(str(error).split())
        named = [key for key in plain if re.search(rf"\b{re.escape(key)}\b", problem)]
        key = max(named, key=len, default="")
        path, value = (f"config.{key}", plain[key]) if key else ("config", plain)
        raise SettingError(path, value, problem) from error


def sample_seeds(num_samples: int) -> list[int]:
    """Returns the seeds of so many samples: the paper's five, then derived ones."""
    more = (derive_seed(PAPER_SEEDS[0], "sample", i) for i in range(5, num_samples))
    return [*PAPER_SEEDS[:num_samples], *more]
