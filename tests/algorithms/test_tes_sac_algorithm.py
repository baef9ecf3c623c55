"""TES-SAC as an RLlib algorithm: workers, suites, Tune and checkpoints."""

import numpy as np
import pytest
from ray import tune
from ray.rllib.core import DEFAULT_MODULE_ID

from rllib_arrow import TESSAC, TESSACConfig
from tests.algorithms.tiny import tiny_config, train

pytestmark = pytest.mark.usefixtures("ray_two_cpus")


def scheduled_config() -> TESSACConfig:
    """Every step is calm, so the target falls at once."""
    return tiny_config("TES-SAC").training(
        tes_start_epoch=0, tes_period=2, tes_mean_threshold=9.0, tes_std_threshold=9.0
    )


def learner_state(algorithm: TESSAC) -> dict:
    return algorithm.learner_group.get_state()["learner"]


def test_target_entropy_is_positive_and_falls_and_alpha_keeps_its_bounds_in_a_run():
    algorithm = scheduled_config().build_algo()
    learned = [r["learners"][DEFAULT_MODULE_ID] for r in train(algorithm, 3)]
    targets = [metrics["target_entropy"] for metrics in learned]
    assert 0.8 * np.log(6) >= targets[0] > targets[1] > targets[2] > 0
    assert all(1e-6 <= metrics["alpha_value"] <= 0.5 for metrics in learned)
    assert all(metrics["updates_per_s"] > 0 for metrics in learned)
    # One memory, and it is the replay actor's.
    assert algorithm.local_replay_buffer is None
    algorithm.stop()


def test_a_checkpoint_holds_schedule_temperature_and_replay(tmp_path):
    algorithm = scheduled_config().build_algo()
    train(algorithm, 2)
    path = algorithm.save_to_path(tmp_path / "checkpoint")
    restored = TESSAC.from_checkpoint(path)
    assert learner_state(restored)["tes"] == learner_state(algorithm)["tes"]
    assert learner_state(restored)["tes"]["entropy_target"]["target"] < 1.4
    runs = [train(a, 1)[0] for a in (algorithm, restored)]
    stats = [run["replay"]["chunks_added"] for run in runs]
    assert stats[0] == stats[1] == 3 * 160 // 24
    learned = [run["learners"][DEFAULT_MODULE_ID] for run in runs]
    for key in learned[0].keys() - {"learn_s", "updates_per_s", "replay_wait_s"}:
        assert learned[0][key] == learned[1][key], key
    algorithm.stop()
    restored.stop()


def test_two_remote_learners_stay_equal_and_take_the_steps_of_a_single_local_one():
    def states_after_an_epoch(learners: int) -> list[dict]:
        config = scheduled_config()
        config.training(train_batch_size_per_learner=8 // max(1, learners))
        config.learners(num_learners=learners, num_cpus_per_learner=0)
        config.evaluation(evaluation_interval=None)
        algorithm = config.build_algo()
        train(algorithm, 1)
        calls = algorithm.learner_group.foreach_learner(_state)
        states = [call.get() for call in calls]
        algorithm.stop()
        return states

    [alone] = states_after_an_epoch(0)
    first, second = states_after_an_epoch(2)
    assert first["tes"] == second["tes"]
    for key, value in alone["weights"].items():
        np.testing.assert_array_equal(first["weights"][key], second["weights"][key])
        np.testing.assert_allclose(first["weights"][key], value, atol=2e-5)
    assert first["tes"]["log_alpha"] == pytest.approx(alone["tes"]["log_alpha"])


def _state(learner) -> dict:
    weights = learner.module[DEFAULT_MODULE_ID].get_state()
    return {"weights": weights, "tes": learner.get_state()["tes"]}


@pytest.mark.parametrize("suite", ["atari", "coinrun"])
def test_an_epoch_on_every_suite_of_full_size_images(suite):
    config = tiny_config("TES-SAC", suite=suite, tasks=None, epochs_per_task=1)
    config.training(updates_per_epoch=2)
    config.evaluation(evaluation_interval=None)
    algorithm = config.build_algo()
    [result] = train(algorithm, 1)
    assert result["frames"] == 160
    assert np.isfinite(result["learners"][DEFAULT_MODULE_ID]["qf_loss"])
    algorithm.stop()


def test_it_runs_under_tune_by_its_registered_name(tmp_path):
    config = tiny_config("TES-SAC")
    config.evaluation(evaluation_interval=2)
    results = tune.Tuner(
        "TES-SAC",
        param_space=config,
        run_config=tune.RunConfig(
            stop={"training_iteration": 2}, storage_path=str(tmp_path), verbose=0
        ),
    ).fit()
    assert not results.errors
    assert results[0].metrics["frames"] == 320
