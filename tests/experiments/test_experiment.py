"""What a tuned example means once it is read."""

from __future__ import annotations

import os
import time

import pytest
from ray.tune.search.variant_generator import generate_variants

from rllib_arrow.errors import UserError
from rllib_arrow.experiments.experiment import read_experiment
from rllib_arrow.experiments.yaml_settings import examples, to_tune
from rllib_arrow.settings import is_number


def test_a_file_is_laid_over_the_one_it_extends(files):
    experiment = read_experiment(files / "top.yaml")
    assert experiment.name == "top" and experiment.run == "ARROW"
    assert experiment.stop == {"training_iteration": 9}
    assert experiment.config == {
        "curriculum": {
            "suite": "minatar",
            "epochs_per_task": 3,
            "cycles": 1,
            "tasks": ["breakout"],
        },
        "ltdm_fraction": {"grid_search": [0.25, 0.5]},
        "gamma": {"choice": [0.8, 0.99]},
    }


def test_later_bases_win_over_earlier_ones(files):
    (files / "other.yaml").write_text("other: {config: {gamma: 0.7}}\n")
    text = "both: {extends: [base.yaml, other.yaml]}\n"
    (files / "both.yaml").write_text(text)
    assert read_experiment(files / "both.yaml").config["gamma"] == 0.7


def test_options_win_over_the_file_with_or_without_config_in_the_path(files):
    experiment = read_experiment(
        files / "top.yaml",
        settings=[
            "config.gamma=0.5",
            "ltdm_fraction=0.75",
            "curriculum.tasks=[asterix, freeway]",
            "max_failures=0",
        ],
        stop=["frames=1e6", "training_iteration=4"],
        num_samples=3,
    )
    assert experiment.config["gamma"] == 0.5
    assert experiment.config["ltdm_fraction"] == 0.75
    assert experiment.config["curriculum"]["tasks"] == ["asterix", "freeway"]
    assert experiment.max_failures == 0 and experiment.num_samples == 3
    assert experiment.stop == {"training_iteration": 4, "frames": 1e6}


def test_one_search_space_replaces_another_whole(files):
    settings = ["ltdm_fraction={uniform: [0.1, 0.9]}"]
    config = read_experiment(files / "base.yaml", settings).config
    assert config["ltdm_fraction"] == {"uniform": [0.1, 0.9]}


def test_numbers_without_a_point_are_numbers_on_the_command_line(files):
    settings = ["actor_lr=1e-4", "world_model_updates=1e2", "replay_max_bytes=2e9"]
    config = read_experiment(files / "top.yaml", settings).config
    assert config["actor_lr"] == 0.0001
    updates = config["world_model_updates"]
    assert updates == 100 and isinstance(updates, int)
    assert config["replay_max_bytes"] == 2_000_000_000


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1e-4, True),
        ("1e-4", False),
        (7, True),
        (True, False),
        ("fast", False),
        ("1.2.3", False),
        ("e5", False),
        (float("nan"), False),
        (None, False),
    ],
)
def test_only_finite_numbers_count_as_numbers(written, meant):
    assert is_number(written) is meant


@pytest.mark.parametrize("key", ["actor_lr", "replay_max_bytes"])
def test_a_number_that_yaml_reads_as_a_text_is_refused_with_the_remedy(key, tmp_path):
    (tmp_path / "a.yaml").write_text(
        "a:\n  run: DV3\n  config:\n    curriculum: {suite: minatar, "
        f"epochs_per_task: 2}}\n    {key}: 1e-4\n"
    )
    with pytest.raises(UserError, match=rf"{key}.*'1e-4'.*1\.0e-4"):
        read_experiment(tmp_path / "a.yaml")


def test_anchors_and_merge_keys_of_yaml_work(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "a:\n  run: DV3\n  config:\n    curriculum:\n      <<: &x {suite: minatar}\n"
        "      epochs_per_task: 2\n"
    )
    config = read_experiment(tmp_path / "a.yaml").config
    assert config["curriculum"] == {"suite": "minatar", "epochs_per_task": 2}


def test_every_value_of_every_search_space_is_tried_when_checking():
    spaces = {"a": {"grid_search": [1, 2, 3]}, "b": {"c": {"choice": [4, 5]}}, "d": 6}
    plain = examples(spaces)
    assert [x["a"] for x in plain] == [1, 2, 3]
    assert {x["b"]["c"] for x in plain} == {4, 5}
    assert all(x["d"] == 6 for x in plain)


def test_uniform_and_loguniform_stay_within_their_bounds():
    space = to_tune({"a": {"uniform": [2, 3]}, "b": {"loguniform": [1e-4, 1e-2]}})
    drawn = [config for _ in range(50) for _, config in generate_variants(space)]
    assert all(2 <= x["a"] <= 3 and 1e-4 <= x["b"] <= 1e-2 for x in drawn)
    assert len({x["a"] for x in drawn}) > 40


def test_an_environment_alone_is_an_experiment(tmp_path):
    (tmp_path / "a.yaml").write_text("a: {run: ARROW, env: ALE/Pong-v5}")
    assert read_experiment(tmp_path / "a.yaml").env == "ALE/Pong-v5"
    (tmp_path / "a.yaml").write_text("a: {run: ARROW, env: Pong}")
    with pytest.raises(UserError, match="env = 'Pong': unknown environment"):
        read_experiment(tmp_path / "a.yaml")
    plan = "{suite: minatar, epochs_per_task: 1}"
    text = f"a: {{run: ARROW, env: ALE/Pong-v5, config: {{curriculum: {plan}}}}}"
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UserError, match="must stand alone or be one of the curriculum"):
        read_experiment(tmp_path / "a.yaml")


SMALL = (
    "mine: {run: ARROW, config: {curriculum: {suite: minatar, tasks: [breakout, "
    "freeway], epochs_per_task: %s}, seed: %s}}\n"
)


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for i in range(1, levels):
        lines.append(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]")
    return "mine:\n" + "".join(f"  {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (bomb(9), "aliases"),
        ("mine: &a [*a]\n", "aliases"),
        ("mine: {config: &a {b: *a}}\n", "aliases"),
        ("mine: [" + "1, " * 4_400_000 + "1]\n", "more than the 1,048,576 that"),
        ("mine: " + "[" * 5000 + "]" * 5000 + "\n", "not valid YAML"),
        (SMALL % ("1", "0x" + "f" * 20_000), "seed = a number too long to be shown"),
        (SMALL % ("1, cycles: 1000000000", "1"), "must be at most 50,000 for 2 tasks"),
        (SMALL % ("1", "1}, num_samples: 1000000000, stop: {"), "num_samples"),
    ],
    ids=[
        "bomb",
        "circle",
        "circle of mappings",
        "13 MB",
        "depth",
        "digits",
        "cycles",
        "samples",
    ],
)
def test_a_file_that_would_take_all_memory_or_time_is_refused_at_once(
    text, told, tmp_path
):
    file = tmp_path / "big.yaml"
    file.write_text(text)
    began = time.monotonic()
    with pytest.raises(UserError) as caught:
        read_experiment(file)
    line = str(caught.value)
    assert line.startswith(str(file)) and told in line and "\n" not in line
    assert len(line) < 300 and time.monotonic() - began < 5


def test_a_few_aliases_are_welcome(tmp_path):
    file = tmp_path / "good.yaml"
    file.write_text(
        "mine: {run: ARROW, config: {world_model_lr: &lr 1.0e-4, actor_lr: *lr, "
        "curriculum: {suite: minatar, epochs_per_task: 2}}}\n"
    )
    assert read_experiment(file).config["actor_lr"] == 1e-4


def test_pipes_and_devices_are_no_experiments(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    for name in ("pipe.yaml", "zero.yaml"):
        with pytest.raises(UserError, match=f"{name}: must be a regular file"):
            read_experiment(tmp_path / name)
