"""What Tune makes of an experiment: trials, seeds, a run to go on with."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from ray.tune.search.variant_generator import generate_variants

from rllib_arrow import ARROWConfig
from rllib_arrow.errors import UserError
from rllib_arrow.experiments import launch
from rllib_arrow.experiments.experiment import read_experiment
from rllib_arrow.experiments.launch import sample_seeds
from rllib_arrow.experiments.location import location_of, write_record
from tests.experiments.conftest import TOP

CLUSTER = {"CPU": 2.0}


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


def test_samples_have_the_papers_seeds_and_then_new_ones():
    paper = [123456789, 1337, 31337, 42, 987654321]
    assert sample_seeds(1) == paper[:1]
    assert sample_seeds(5) == paper
    more = sample_seeds(8)
    assert more[:5] == paper and len(set(more)) == 8


def test_every_seed_of_a_sample_is_one_that_rllib_takes():
    for seed in sample_seeds(60):
        ARROWConfig().debugging(seed=seed).check_settings(rllib=True)
        np.random.seed(seed + 2_000_000)  # as RLlib does, for the runner of that number
    with pytest.raises(
        UserError, match=r"seed \(5000000000\) must be a whole number in"
    ):
        ARROWConfig().debugging(seed=5_000_000_000).check_settings(rllib=True)


def test_a_sweep_gives_every_value_every_seed(files):
    experiment = read_experiment(files / "base.yaml", num_samples=3)
    found = [(v["ltdm_fraction"], v["seed"]) for v in variants(experiment)]
    seeds = (123456789, 1337, 31337)
    assert sorted(found) == sorted((r, s) for r in (0.25, 0.5) for s in seeds)


def test_a_seed_in_the_file_is_used_as_it_stands(files):
    experiment = read_experiment(files / "base.yaml", ["seed=7"])
    assert {v["seed"] for v in variants(experiment)} == {7}


def test_a_resumed_run_needs_what_it_was_placed_on(files, tmp_path, monkeypatch):
    monkeypatch.setattr(launch.tune.Tuner, "restore", lambda path, **options: "tuner")
    location = str(tmp_path / "run")
    experiment = read_experiment(files / "base.yaml", ["num_learners=1"])
    launch.make_tuner(experiment, location, {"CPU": 2, "GPU": 1}, [])
    (tmp_path / "run" / "experiment_state-2026-01-01.json").write_text("{}")
    with pytest.raises(UserError, match=r"num_gpus_per_learner=1.* needs 1 GPUs"):
        launch.restore_tuner(experiment, location, {"CPU": 8}, [])
    gpu = {"CPU": 1, "GPU": 1}
    assert launch.restore_tuner(experiment, location, gpu, []) == "tuner"


def test_a_run_that_stopped_before_tune_listed_it_begins_anew(
    files, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(launch.tune.Tuner, "restore", lambda *a, **k: pytest.fail())
    run = tmp_path / "run"
    experiment = read_experiment(files / "base.yaml")
    launch.make_tuner(experiment, str(run), CLUSTER, [])
    (run / "experiment_state-2026-01-01.json").touch()  # empty
    tuner = launch.restore_tuner(experiment, str(run), CLUSTER, [])
    assert isinstance(tuner, launch.tune.Tuner)
    assert "stopped before its first checkpoint: begun" in capsys.readouterr().out
    (run / "00000_seed=1" / "checkpoint_000000").mkdir(parents=True)
    with pytest.raises(UserError, match="list of its trials is missing or damaged"):
        launch.restore_tuner(experiment, str(run), CLUSTER, [])


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
        launch.restore_tuner(changed, location, CLUSTER, [])


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
    launch.restore_tuner(experiment, location, CLUSTER, [])
    assert cut.read_text() == whole.read_text()
    said = f"{cut} is empty or cut: went on from {whole}"
    assert said in capsys.readouterr().out
    assert asked == [{"trainable": "ARROW", "resume_errored": True}]


def test_trial_directories_say_what_varies():
    varied = {"ltdm_fraction": 0.25, "curriculum/tasks": ["boxing"], "seed": 42}
    trial = SimpleNamespace(trial_id="ab12c_00003", evaluated_params=varied)
    name = "00003_ltdm_fraction=0.25,tasks=boxing,seed=42"
    assert launch.trial_dirname(trial) == name


def test_whatever_yaml_can_say_is_written_down(files, tmp_path):
    task = "{id: minatar/breakout, name: b, kwargs: {since: 2024-01-01}}"
    said = f"curriculum={{suite: custom, epochs_per_task: 1, tasks: [{task}]}}"
    experiment = read_experiment(files / "base.yaml", [said])
    write_record(str(tmp_path / "run"), experiment)
    assert "2024-01-01" in (tmp_path / "run" / "experiment.json").read_text()
