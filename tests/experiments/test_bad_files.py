"""What is wrong in an experiment's file is refused in one line that names it."""

from __future__ import annotations

import pytest

from tests.experiments.tools import GOOD, MINATAR, curriculum, one_error_line, tree


def config(line: str) -> str:
    return f"{GOOD.rpartition('    ')[0]}    {line}\n"


# What is wrong, the file, and what the line must contain besides the file's name.
BAD_FILES = {
    "empty": ("", ["None"]),
    "a list": ("- run: ARROW\n", ["one experiment"]),
    "broken yaml": ("mine: {run: [ARROW\n", ["not valid YAML", "line"]),
    "a tab": ("mine:\n\trun: ARROW\n", ["line 2", "not valid YAML"]),
    "a python object": ("mine: !!python/object:os.system {}\n", ["not valid YAML"]),
    "two experiments": ("a: {run: ARROW}\nb: {run: DV3}\n", ["2 names"]),
    "experiment is a text": ("mine: ARROW\n", ["mine", "'ARROW'", "mapping"]),
    "duplicate key": (GOOD + "  run: DV3\n", ["'run' occurs twice"]),
    "number as key": ("mine: {1: 2}\n", ["'1' must be a text"]),
    "no algorithm": ("mine: {config: {}}\n", ["run", "ARROW, DV3, QUIVER, TES-SAC"]),
    "unknown algorithm": ("mine: {run: ARROV}\n", ["'ARROV'", "'ARROW'"]),
    "algorithm is a list": ("mine: {run: [ARROW]}\n", ["run", "['ARROW']"]),
    "unknown environment": (
        "mine: {run: ARROW, env: Contnual}\n",
        ["'Contnual'", "'Continual'"],
    ),
    "unknown block key": (
        "mine: {run: ARROW, stopp: {}}\n",
        ["stopp", "did you mean 'stop'"],
    ),
    "config is a list": ("mine: {run: ARROW, config: [1]}\n", ["config", "[1]"]),
    "unknown setting": (
        config("ltdm_fracton: 0.5"),
        ["config.ltdm_fracton", "0.5", "'ltdm_fraction'"],
    ),
    "private setting": (config("_is_frozen: true"), ["config._is_frozen"]),
    "code as setting": (config("env_runner_cls: os.system"), ["env_runner_cls"]),
    "text for a number": (
        config("world_model_lr: fast"),
        ["config.world_model_lr", "'fast'", "a number"],
    ),
    "fraction for a count": (
        config("world_model_updates: 10.5"),
        ["world_model_updates", "10.5", "whole number"],
    ),
    "bool for a number": (config("seed: true"), ["config.seed", "True"]),
    "number for a bool": (config("interleaved: 1"), ["interleaved", "true or false"]),
    "nothing for a number": (config("gamma:"), ["config.gamma", "None"]),
    "infinite": (config("gamma: .inf"), ["config.gamma", "inf"]),
    "text for a mapping": (
        "mine: {run: ARROW, config: {curriculum: atari}}\n",
        ["curriculum", "'atari'"],
    ),
    "out of range": (config("ltdm_fraction: 1.5"), ["config.ltdm_fraction = 1.5"]),
    "unknown model size": (config("model_size: XXL"), ["config.model_size = 'XXL'"]),
    "negative seed": (config("seed: -1"), ["config.seed = -1"]),
    "no suite": (curriculum("epochs_per_task: 2"), ["suite"]),
    "unknown suite": (
        curriculum("suite: minatr, epochs_per_task: 2"),
        ["config.curriculum", "'minatr'", "'minatar'"],
    ),
    "unknown task": (
        curriculum(f"{MINATAR}, tasks: [breakuot]"),
        ["config.curriculum.tasks", "'breakuot'", "'breakout'"],
    ),
    "unknown order": (
        curriculum(f"{MINATAR}, order: reverse"),
        ["config.curriculum.order = 'reverse'", "'reversed'"],
    ),
    "unknown curriculum key": (
        curriculum(f"{MINATAR}, cycle: 2"),
        ["'cycle'", "'cycles'"],
    ),
    "no epochs": (
        curriculum("suite: minatar, epochs_per_task: 0"),
        ["epochs_per_task", "0"],
    ),
    "empty grid": (config("ltdm_fraction: {grid_search: []}"), ["grid_search"]),
    "bad value in a grid": (
        config("ltdm_fraction: {grid_search: [0.5, half]}"),
        ["config.ltdm_fraction", "'half'"],
    ),
    "wrong bounds": (config("gamma: {uniform: [1, 0.9]}"), ["uniform", "[1, 0.9]"]),
    "log of zero": (config("actor_lr: {loguniform: [0, 1]}"), ["above 0"]),
    "space with company": (
        config("gamma: {choice: [0.9], x: 1}"),
        ["config.gamma", "no other keys"],
    ),
    "unknown stop key": (
        "mine: {run: ARROW, stop: {iterations: 3}}\n",
        ["stop.iterations", "'training_iteration'"],
    ),
    "stop is a text": ("mine: {run: ARROW, stop: now}\n", ["stop", "'now'"]),
    "stop at zero": ("mine: {run: ARROW, stop: {frames: 0}}\n", ["stop.frames", "0"]),
    "unknown checkpoint key": (
        "mine: {run: ARROW, checkpoint_config: {frequency: 3}}\n",
        ["checkpoint_config.frequency", "'checkpoint_frequency'"],
    ),
    "keep no checkpoint": (
        "mine: {run: ARROW, checkpoint_config: {num_to_keep: 1}}\n",
        ["checkpoint_config.num_to_keep", "1", "whole number >= 2"],
    ),
    "no samples": ("mine: {run: ARROW, num_samples: 0}\n", ["num_samples", "0"]),
    "seed and samples": (
        "mine: {run: ARROW, num_samples: 2, config: {seed: 7}}\n",
        ["config.seed", "7", "num_samples"],
    ),
    "extends nothing": ("mine: {extends: gone.yaml}\n", ["extends", "'gone.yaml'"]),
    "extends itself": ("mine: {extends: bad.yaml}\n", ["extends itself"]),
    "extends a number": ("mine: {extends: 3}\n", ["extends", "3"]),
}


@pytest.mark.parametrize("mistake", BAD_FILES)
def test_a_bad_file_is_refused_in_one_line_that_names_it(mistake, here, capsys):
    text, fragments = BAD_FILES[mistake]
    (here / "bad.yaml").write_text(text)
    before = tree(here)
    line = one_error_line(capsys, ["train", "file", "bad.yaml"])
    for fragment in ["bad.yaml", *fragments]:
        assert fragment in line
    assert tree(here) == before


def test_a_mistake_in_a_base_file_is_reported_with_the_base_file(here, capsys):
    (here / "base.yaml").write_text("base: {run: ARROW, config: {gama: 1}}\n")
    (here / "top.yaml").write_text("top: {extends: base.yaml}\n")
    assert "base.yaml: config.gama" in one_error_line(
        capsys, ["train", "file", "top.yaml"]
    )


def test_a_circle_of_files_is_refused(here, capsys):
    (here / "a.yaml").write_text("a: {extends: b.yaml}\n")
    (here / "b.yaml").write_text("b: {extends: a.yaml}\n")
    line = one_error_line(capsys, ["train", "file", "a.yaml"])
    assert "a.yaml -> b.yaml -> a.yaml" in line


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("grad_clip=-1.0", "config.grad_clip = -1.0"),
        ("evaluation_duration=auto", "config.evaluation_duration = 'auto'"),
        ("alpha_max=0.1", "config.alpha_max = 0.1: initial_alpha (0.2) must lie"),
        ("n_step=3", "config.n_step = 3: must be 1"),
        ("train_batch_size_per_learner=0", "config.train_batch_size_per_learner = 0"),
        ("curriculum.tasks=[{id: A-v0, reward_scale: 0}]", "config.curriculum.tasks"),
        ("curriculum.suite=minatr", "config.curriculum.suite = 'minatr'"),
        ("evaluation_parallel_to_training=true", "evaluation_parallel_to_training"),
    ],
)
def test_the_setting_that_an_algorithm_refuses_is_named(setting, named, here, capsys):
    (here / "good.yaml").write_text(curriculum(MINATAR).replace("ARROW", "TES-SAC"))
    line = one_error_line(capsys, ["train", "file", "good.yaml", "--set", setting])
    assert line.startswith(f"rllib: --set {setting}: ") and named in line
