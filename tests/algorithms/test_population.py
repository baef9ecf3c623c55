"""Population-based training through Tune itself."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from ray import tune
from ray.tune.schedulers import PopulationBasedTraining

from rllib_arrow import register
from tests.algorithms.tiny import tiny_config

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ray_two_cpus")]


def population(storage: Path, mutations: dict, **settings) -> tune.ResultGrid:
    """Two trials, of which the worse goes on from the better after each epoch."""
    register()
    return tune.Tuner(
        "ARROW",
        param_space=tiny_config().to_dict() | settings,
        tune_config=tune.TuneConfig(
            metric="evaluation/score_mean",
            mode="max",
            scheduler=PopulationBasedTraining(
                time_attr="training_iteration",
                perturbation_interval=1,
                quantile_fraction=0.5,
                hyperparam_mutations=mutations,
            ),
        ),
        run_config=tune.RunConfig(
            name="population",
            storage_path=str(storage),
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=True),
            verbose=0,
        ),
    ).fit()


def test_a_copied_trial_learns_at_the_rate_of_its_own_configuration(tmp_path):
    results = population(
        tmp_path,
        {"actor_lr": tune.uniform(1e-4, 1e-3), "entropy_scale": [1e-3, 1e-2]},
        actor_lr=tune.grid_search([1e-4, 8e-4]),
        entropy_scale=1e-3,
    )
    assert not results.errors
    assert [result.metrics["training_iteration"] for result in results] == [4, 4]
    copies = (tmp_path / "population" / "pbt_global.txt").read_text().splitlines()
    assert copies
    assert len({result.config["actor_lr"] for result in results}) == 2
    for result in results:
        state = Path(result.checkpoint.path) / "learner_group" / "learner" / "state.pkl"
        optimizers = pickle.loads(state.read_bytes())["optimizer"]
        [group] = optimizers["default_policy_actor"]["state"]["param_groups"]
        assert float(group["lr"]) == pytest.approx(result.config["actor_lr"])


def test_what_a_filled_memory_cannot_change_is_refused_in_one_line(tmp_path):
    rates = tune.grid_search([1e-4, 8e-4])
    results = population(tmp_path, {"ltdm_fraction": [0.25, 0.75]}, actor_lr=rates)
    [error] = results.errors
    lines = [line for line in str(error).splitlines() if "ltdm_fraction (0." in line]
    assert "must stay 0.5, with which" in lines[-1]
