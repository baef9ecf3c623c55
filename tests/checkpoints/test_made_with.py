"""What may change on a restore goes on; the rest is refused in one line."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from rllib_arrow.checkpoints.made_with import (
    UNNAMED,
    check_made_with,
    write_made_with,
)
from rllib_arrow.errors import UserError
from tests.algorithms.tiny import METHODS, tiny_config

REFUSED = {
    "seed",
    "env_options",
    "num_envs_per_env_runner",
    "rollout_fragment_length",
    "replay_capacity_chunks",
    "replay_chunk_length",
    "ltdm_fraction",
    "fifo_retention",
    "fifo_sampling",
    "ltdm_probability_rule",
    "ltdm_fraction_rule",
    "ltdm_bounds",
    "exploration_rule",
    "gru_norm",
    "posterior_skip",
    "learned_initial_state",
    "cloning",
    "advantage_scale",
    "model_size",
    "cnn_depth",
    "mlp_units",
    "mlp_layers",
}
BY_HAND = {"model_size": "micro", "env_options": {"sticky": 0.3}}


def changed(name: str, value: Any) -> Any:
    """Another value of a setting; whether it is a sensible one does not matter."""
    if name in BY_HAND:
        return BY_HAND[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    return {dict: {"x": 1}, list: ["seed"], type(None): 7}[type(value)]


def made(tmp_path: Path, finished: int = 3, **curriculum: Any) -> Path:
    config = tiny_config(**curriculum)
    write_made_with(tmp_path, config, config.curriculum_object(), finished)
    return tmp_path


def settings() -> list[tuple[str, str]]:
    return [
        (method, name)
        for method, config in METHODS.items()
        for name in config.declared_settings
        if name != "curriculum"
    ]


@pytest.mark.parametrize(("method", "name"), settings())
def test_every_setting_goes_on_or_is_refused_with_both_values(method, name, tmp_path):
    config = tiny_config(method)
    write_made_with(tmp_path, config, config.curriculum_object(), 3)
    check_made_with(tmp_path, config)
    other = copy.deepcopy(config)
    value = changed(name, getattr(config, name))
    setattr(other, name, value)
    if name not in REFUSED:
        check_made_with(tmp_path, other)
        return
    with pytest.raises(UserError) as caught:
        check_made_with(tmp_path, other)
    line = str(caught.value)
    assert "\n" not in line and line.startswith(f"{name} ({value!r})")
    assert f"must stay {getattr(config, name)!r}, with which {tmp_path}" in line


@pytest.mark.parametrize(
    ("curriculum", "named"),
    [
        ({"suite": "minatar_variants", "tasks": ["base"]}, "curriculum.suite"),
        ({"order": "reversed"}, "curriculum.order ('reversed').*'default'"),
        ({"tasks": ["space_invaders", "breakout"]}, "curriculum.tasks"),
        ({"tasks": ["breakout"]}, "curriculum.tasks"),
        ({"tasks": ["breakout", "space_invaders", "freeway"]}, "curriculum.tasks"),
        # The first task had two epochs, not one or four.
        ({"epochs_per_task": 1, "cycles": 3}, "breakout 1-1.*breakout 1-2"),
        ({"epochs_per_task": 4}, "breakout 1-3.*breakout 1-2, space_invaders 3-3"),
    ],
)
def test_another_curriculum_is_refused(curriculum, named, tmp_path):
    path = made(tmp_path)
    with pytest.raises(UserError, match=named.replace("(", r"\(").replace(")", r"\)")):
        check_made_with(path, tiny_config(**curriculum))


@pytest.mark.parametrize(
    "curriculum",
    [
        {"cycles": 2},
        {"epochs_per_task": [2, 9]},
        {"epochs_per_task": [2, 1]},  # shorter, but not than what was trained
        {"switch": {"rule": "plateau"}},
    ],
)
def test_more_or_fewer_epochs_to_come_are_welcome(curriculum, tmp_path):
    check_made_with(made(tmp_path), tiny_config(**curriculum))


def test_exposures_that_ended_early_stay_as_they_were_trained(tmp_path):
    config = tiny_config(epochs_per_task=4)
    cut = config.curriculum_object().ended_early(1)
    write_made_with(tmp_path, config, cut, finished=3)
    check_made_with(tmp_path, config)
    check_made_with(tmp_path, tiny_config(epochs_per_task=9))
    with pytest.raises(UserError, match=r"space_invaders 2-2.*space_invaders 2-3"):
        check_made_with(tmp_path, tiny_config(epochs_per_task=[4, 1], cycles=2))


def test_other_methods_and_numbers_of_runners_are_refused(tmp_path):
    path = made(tmp_path)
    with pytest.raises(UserError, match=r"run \('DV3'\) must stay 'ARROW'"):
        check_made_with(path, tiny_config("DV3"))
    check_made_with(path, tiny_config().env_runners(num_env_runners=1))
    with pytest.raises(UserError, match=r"num_env_runners \(2\) must stay 1"):
        check_made_with(path, tiny_config().env_runners(num_env_runners=2))


def test_resources_may_change_and_old_checkpoints_are_taken_as_they_are(tmp_path):
    config = tiny_config().learners(num_learners=2, num_gpus_per_learner=1)
    config.evaluation(evaluation_num_env_runners=3)
    check_made_with(made(tmp_path), config)
    (tmp_path / "made_with.json").unlink()
    check_made_with(tmp_path, tiny_config("TES-SAC"))


def test_a_checkpoint_from_before_there_were_rules_goes_on_without_them(tmp_path):
    path = made(tmp_path)
    content = json.loads((path / "made_with.json").read_text())
    for name in UNNAMED:
        content["settings"].pop(name, None)
    (path / "made_with.json").write_text(json.dumps(content))
    check_made_with(path, tiny_config())
    with pytest.raises(UserError, match=r"fifo_sampling.*must stay 'uniform'"):
        check_made_with(path, tiny_config().training(fifo_sampling="curious"))
