"""What an RLlib user expects of any algorithm, tried with RLlib's public calls."""

from __future__ import annotations

import numpy as np
import pytest
import tree
from ray.rllib.algorithms.algorithm import Algorithm

from rllib_arrow.errors import UserError
from tests.algorithms.tiny import METHODS, digest, scores, tiny_config, train

pytestmark = pytest.mark.usefixtures("ray_two_cpus")

RATES = {
    "ARROW": {"world_model_lr": 0.0123, "actor_lr": 0.0045, "critic_lr": 0.0067},
    "DV3": {"world_model_lr": 0.0123, "actor_lr": 0.0045, "critic_lr": 0.0067},
    "TES-SAC": {"actor_lr": 0.0123, "critic_lr": 0.0045, "alpha_lr": 0.0067},
}


def weights(algorithm: Algorithm) -> dict[str, np.ndarray]:
    """What the learner has learned."""
    state = algorithm.learner_group.get_state()["learner"]["rl_module"]
    return state["default_policy"]


def learning_rates(algorithm: Algorithm) -> set[float]:
    """Every learning rate in the state of the optimisers."""
    state = algorithm.learner_group.get_state()["learner"]["optimizer"]
    found = tree.flatten_with_path(state)
    return {round(float(leaf), 12) for path, leaf in found if path[-1] == "lr"}


def test_evaluate_always_returns_scores_and_adds_no_rows(tmp_path):
    algorithm = tiny_config().build_algo()
    random_policy = algorithm.evaluate()
    assert random_policy["epoch"] == 0
    [result] = train(algorithm, 1)
    written = scores(algorithm)
    for _ in range(2):
        found = algorithm.evaluate()
        assert found == result["evaluation"]
        assert set(found) >= {"breakout", "space_invaders", "epoch", "env_runners"}
    means = [found[task]["return_mean"] for task in ("breakout", "space_invaders")]
    overall = found["env_runners"]["episode_return_mean"]
    assert overall == pytest.approx(np.mean(means))
    algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.stop()

    restored = Algorithm.from_checkpoint(tmp_path / "checkpoint")
    assert restored.evaluate() == found
    assert scores(restored) == written == scores(algorithm)
    restored.stop()


def test_the_score_to_tune_by_is_there_after_every_epoch():
    config = tiny_config().evaluation(evaluation_interval=3)
    algorithm = config.build_algo()
    results = train(algorithm, 4)
    found = [result["evaluation"]["env_runners"] for result in results]
    assert all(np.isfinite(one["episode_return_mean"]) for one in found)
    epochs = [result["evaluation"]["epoch"] for result in results]
    assert epochs == [0, 0, 3, 4]
    algorithm.stop()


@pytest.mark.parametrize("runners", [0, 1])
def test_the_module_is_what_was_learned(runners):
    config = tiny_config()
    config.env_runners(num_env_runners=runners, num_cpus_per_env_runner=0)
    algorithm = config.build_algo()
    before = weights(algorithm)
    train(algorithm, 1)
    learned, found = weights(algorithm), algorithm.get_module().get_state()
    assert found.keys() <= learned.keys()
    assert all(np.array_equal(found[key], learned[key]) for key in found)
    assert any(not np.array_equal(found[key], before[key]) for key in found)
    assert algorithm.get_module("another") is None
    algorithm.stop()


@pytest.mark.parametrize("method", METHODS)
def test_learning_rates_of_the_configuration_win_over_the_checkpoints(method, tmp_path):
    algorithm = tiny_config(method).build_algo()
    train(algorithm, 1)
    path = algorithm.save_to_path(tmp_path / "checkpoint")
    before, saved = learning_rates(algorithm), digest(algorithm)
    algorithm.restore(str(path))
    assert (learning_rates(algorithm), digest(algorithm)) == (before, saved)
    algorithm.stop()

    other = tiny_config(method).training(**RATES[method]).build_algo()
    other.restore(str(path))
    assert learning_rates(other) == set(RATES[method].values()) != before
    assert other.train()["training_iteration"] == 2
    other.stop()


def test_what_may_change_on_a_restore_goes_on_and_the_rest_is_refused(tmp_path):
    algorithm = tiny_config().build_algo()
    train(algorithm, 4)
    path = algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.stop()

    wrong = tiny_config().training(ltdm_fraction=0.25).build_algo()
    before = digest(wrong)
    with pytest.raises(UserError, match=r"ltdm_fraction \(0.25\) must stay 0.5") as no:
        wrong.restore(str(path))
    assert "\n" not in str(no.value) and digest(wrong) == before
    wrong.stop()

    config = tiny_config(cycles=2).training(
        entropy_scale=0.01, gamma=0.9, horizon_H=3, batch_size_B=6, batch_length_T=6,
        world_model_updates=2, ltdm_probability=0.9,
    )  # fmt: skip
    config.evaluation(evaluation_duration=2, evaluation_interval=2)
    config.continual(replay_prefetch=1, num_envs_per_evaluation=2)
    config.learners(num_learners=1, num_cpus_per_learner=0)
    more = config.build_algo()
    more.restore(str(path))
    results = train(more, 2)
    assert [result["curriculum"]["epoch"] for result in results] == [5, 6]
    assert results[-1]["curriculum"]["task"] == "breakout"
    more.stop()
