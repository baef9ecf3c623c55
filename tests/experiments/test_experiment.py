"""What a tuned example means once it is read, and what Tune makes of it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from ray.tune.search.variant_generator import generate_variants

from rllib_arrow import ARROWConfig
from rllib_arrow.errors import UserError
from rllib_arrow.experiments import launch, placement
from rllib_arrow.experiments.experiment import read_experiment
from rllib_arrow.experiments.launch import sample_seeds
from rllib_arrow.experiments.location import location_of, write_record
from rllib_arrow.experiments.yaml_settings import examples, to_tune
from rllib_arrow.settings import is_number

BASE = """
base:
  run: ARROW
  stop: {training_iteration: 9}
  config:
    curriculum: {suite: minatar, epochs_per_task: 8, cycles: 1}
    ltdm_fraction: {grid_search: [0.25, 0.5]}
    gamma: 0.9
"""
TOP = """
top:
  extends: base.yaml
  config:
    curriculum: {epochs_per_task: 3, tasks: [breakout]}
    gamma: {choice: [0.8, 0.99]}
"""
CLUSTER = {"CPU": 2.0}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "top.yaml").write_text(TOP)
    return tmp_path


def variants(experiment) -> list[dict]:
    """Resolves the search space as Tune does."""
    space = launch.param_space(experiment, experiment.config)
    return [config for _, config in generate_variants(space)]


def test_trials_of_a_sweep_are_reported_by_what_it_varies(files):
    (files / "sweep.yaml").write_text(
        TOP.replace("top:", "sweep:").replace(
            "epochs_per_task: 3", "epochs_per_task: {grid_search: [2, 3]}"
        )
    )
    swept = variants(read_experiment(files / "sweep.yaml"))
    assert {tuple(v["label_settings"]) for v in swept} == {
        ("curriculum.epochs_per_task", "gamma")
    }
    config = ARROWConfig().continual(
        curriculum={"suite": "minatar", "epochs_per_task": 2},
        label_settings=["curriculum.epochs_per_task", "gamma"],
    )
    assert config.training(gamma=0.8).reported_method == (
        "ARROW epochs_per_task=2 gamma=0.8"
    )
    config.validate()
    config.training(model_size={"size": "micro", "gru_units": 256})
    labelled = config.continual(label_settings=["model_size"])
    assert labelled.reported_method == (
        "ARROW model_size={'size':'micro','gru_units':256}"
    )
    for wrong in ("gama", "curriculum.epochs", "gamma.x"):
        with pytest.raises(ValueError, match=rf"label_settings \(\['{wrong}'\]\) must"):
            config.continual(label_settings=[wrong]).validate()


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


def test_samples_have_the_papers_seeds_and_then_new_ones():
    paper = [123456789, 1337, 31337, 42, 987654321]
    assert sample_seeds(1) == paper[:1]
    assert sample_seeds(5) == paper
    more = sample_seeds(8)
    assert more[:5] == paper and len(set(more)) == 8


def test_a_sweep_gives_every_value_every_seed(files):
    experiment = read_experiment(files / "base.yaml", num_samples=3)
    found = [(v["ltdm_fraction"], v["seed"]) for v in variants(experiment)]
    seeds = (123456789, 1337, 31337)
    assert sorted(found) == sorted((r, s) for r in (0.25, 0.5) for s in seeds)


def test_a_seed_in_the_file_is_used_as_it_stands(files):
    experiment = read_experiment(files / "base.yaml", ["seed=7"])
    assert {v["seed"] for v in variants(experiment)} == {7}


def test_the_learner_takes_a_gpu_where_there_is_one(files):
    experiment = read_experiment(files / "base.yaml")
    config, line = placement.place_learners(experiment, {"CPU": 8, "GPU": 1})
    assert config["num_gpus_per_learner"] == 1 and line == ""
    config, line = placement.place_learners(experiment, CLUSTER)
    assert config["num_gpus_per_learner"] == 0 and "on the CPU" in line


def test_a_choice_of_the_user_about_gpus_stands(files):
    experiment = read_experiment(files / "base.yaml", ["num_gpus_per_learner=0"])
    config, line = placement.place_learners(experiment, {"CPU": 8, "GPU": 1})
    assert config["num_gpus_per_learner"] == 0 and line == ""


def test_a_request_is_refused_only_if_the_cluster_is_too_small(files):
    experiment = read_experiment(files / "base.yaml", ["num_env_runners=3"])
    placement.check_resources(experiment, experiment.config, {"CPU": 4})
    with pytest.raises(UserError, match="num_env_runners=3 needs 4 CPUs"):
        placement.check_resources(experiment, experiment.config, {"CPU": 3})


def test_a_search_space_is_refused_for_its_largest_value(files):
    settings = ["num_env_runners={grid_search: [0, 5]}"]
    experiment = read_experiment(files / "base.yaml", settings)
    with pytest.raises(UserError, match="num_env_runners=5 needs 6 CPUs"):
        placement.check_resources(experiment, experiment.config, CLUSTER)


@pytest.mark.parametrize(
    ("cpus", "gpus", "spared"),
    [
        (4, 0, []),
        (3, 1, []),
        (3, 0, ["num_env_runners"]),
        (2, 1, ["num_env_runners"]),
        (2, 0, ["num_env_runners", "num_learners"]),
        (1, 1, ["num_env_runners", "num_learners", "evaluation_num_env_runners"]),
    ],
)
def test_a_small_cluster_gets_fewer_actors_and_one_line(files, cpus, gpus, spared):
    actors = ("num_env_runners", "num_learners", "evaluation_num_env_runners")
    settings = [f"{key}=1" for key in actors]
    settings += ["evaluation_parallel_to_training=true", f"num_gpus_per_learner={gpus}"]
    experiment = read_experiment(files / "base.yaml", settings)
    config, lines = placement.place(experiment, {"CPU": cpus, "GPU": gpus})
    assert [key for key in actors if config[key] == 0] == spared
    told = f"does the work of {', '.join(f'{key}=1' for key in spared)}, with the same"
    assert [told in line for line in lines] == ([True] if spared else [])
    beside = config["evaluation_parallel_to_training"]
    assert beside == ("evaluation_num_env_runners" not in spared)


def test_actors_whose_number_counts_are_not_spared(files):
    for setting in ("num_env_runners=2", "num_learners=2", "num_gpus_per_learner=2"):
        settings = [setting, "evaluation_num_env_runners=2"]
        experiment = read_experiment(files / "base.yaml", settings)
        with pytest.raises(UserError, match=rf"{setting}.* needs "):
            placement.place(experiment, {"CPU": 1, "GPU": 1})


def test_an_actor_that_asks_for_nothing_is_refused(files):
    settings = ["num_env_runners=1", "num_cpus_per_env_runner=0"]
    experiment = read_experiment(files / "base.yaml", settings)
    with pytest.raises(UserError, match=r"num_cpus_per_env_runner and .* above 0"):
        placement.place(experiment, CLUSTER)


def test_a_resumed_run_needs_what_it_was_placed_on(files, tmp_path, monkeypatch):
    monkeypatch.setattr(launch.tune.Tuner, "restore", lambda path, **options: "tuner")
    location = str(tmp_path / "run")
    experiment = read_experiment(files / "base.yaml", ["num_learners=1"])
    launch.make_tuner(experiment, location, {"CPU": 2, "GPU": 1}, [])
    with pytest.raises(UserError, match=r"num_gpus_per_learner=1.* needs 1 GPUs"):
        launch.restore_tuner(experiment, location, {"CPU": 8})
    assert launch.restore_tuner(experiment, location, {"CPU": 1, "GPU": 1}) == "tuner"


def test_storage_is_made_absolute_unless_it_is_an_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert location_of("results", "a") == str(tmp_path / "results" / "a")
    assert location_of("s3://bucket/x/", "a") == "s3://bucket/x/a"


def test_resume_refuses_other_settings_and_shows_both(files, tmp_path):
    location = str(tmp_path / "run")
    write_record(location, read_experiment(files / "base.yaml"))
    assert json.loads((tmp_path / "run" / "experiment.json").read_text())
    changed = read_experiment(files / "base.yaml", ["gamma=0.5"])
    with pytest.raises(UserError, match=r"config\.gamma is 0\.5.*with 0\.9"):
        launch.restore_tuner(changed, location, CLUSTER)


def test_resume_of_the_same_settings_goes_to_tune_with_a_whole_list(
    files, tmp_path, monkeypatch, capsys
):
    location = str(tmp_path / "run")
    experiment = read_experiment(files / "base.yaml")
    write_record(location, experiment)
    asked = []
    monkeypatch.setattr(
        launch.tune.Tuner, "restore", lambda path, **options: asked.append(options)
    )
    whole = tmp_path / "run" / "experiment_state-2026-01-01.json"
    whole.write_text('{"whole": true}')
    cut = tmp_path / "run" / "experiment_state-2026-01-02.json"
    cut.touch()
    launch.restore_tuner(experiment, location, CLUSTER)
    assert cut.read_text() == whole.read_text()
    said = f"{cut} is empty or cut: went on from {whole}"
    assert said in capsys.readouterr().out
    assert asked == [{"trainable": "ARROW", "resume_errored": True}]


def test_trial_directories_say_what_varies():
    varied = {"ltdm_fraction": 0.25, "curriculum/tasks": ["boxing"], "seed": 42}
    trial = SimpleNamespace(trial_id="ab12c_00003", evaluated_params=varied)
    name = "00003_ltdm_fraction=0.25,tasks=boxing,seed=42"
    assert launch.trial_dirname(trial) == name


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
