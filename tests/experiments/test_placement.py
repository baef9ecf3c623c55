"""How an experiment fits on a cluster."""

from __future__ import annotations

import pytest

from rllib_arrow.errors import UserError
from rllib_arrow.experiments import placement
from rllib_arrow.experiments.experiment import read_experiment

CLUSTER = {"CPU": 2.0}


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
