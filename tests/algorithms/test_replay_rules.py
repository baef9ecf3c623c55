"""Rehearsal, exploration, and replay parts that learn from losses, in whole runs."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import ray

from rllib_arrow import ARROW, DV3
from rllib_arrow.algorithms.dv3 import dv3
from rllib_arrow.errors import UserError
from tests.algorithms.dv3_tools import ALL_BEYOND, make_learner, random_batches
from tests.algorithms.tiny import digest, scores, tiny_config, train, weight_sum

ALL = {
    "fifo_retention": "local_forgetting",
    "fifo_sampling": "curious",
    "ltdm_probability_rule": "after_change",
    "ltdm_fraction_rule": "balanced",
    "ltdm_bounds": [0.1, 0.9],
    "exploration_rule": "after_change",
    "rehearsal_from": "both",
    **ALL_BEYOND,
}
WITHOUT_LONG_TERM = (
    *("fifo_retention", "fifo_sampling", "exploration_rule"),
    *ALL_BEYOND,
)
OF_DV3 = {key: ALL[key] for key in WITHOUT_LONG_TERM if key != "cloning"}


def config_with(method, **settings):
    return tiny_config(method).training(**settings)


def outcome(algorithm):
    """All that a run has come to: weights, scores, and the replay's contents."""
    stats = ray.get(algorithm.replay.stats.remote())
    return digest(algorithm), scores(algorithm), stats


def test_sequence_losses_are_the_parts_of_the_world_models_loss():
    learner = make_learner(fifo_sampling="curious", free_bits=0.1)
    means = learner.learn_epoch(0, random_batches())
    losses = learner.take_sequence_losses()
    assert losses.shape == (3, 4) and losses.dtype == np.float32
    assert losses.mean() == pytest.approx(means["world_model_loss"], rel=1e-5)
    assert losses.std(1).min() > 0
    assert learner.take_sequence_losses().size == 0


def test_a_loss_belongs_to_its_sequence():
    """Noise among grey pictures stands out, at its own place."""

    def batches():
        for batch, noisy in zip(random_batches(), (2, 0, 3, 1, 1), strict=False):
            batch["obs"][np.arange(4) != noisy] = 128
            yield batch

    learner = make_learner(fifo_sampling="curious")
    learner.learn_epoch(0, batches())
    assert learner.take_sequence_losses().argmax(1).tolist() == [2, 0, 3]


def test_asking_for_losses_changes_no_update():
    plain, telling = make_learner(), make_learner(fifo_sampling="curious")
    results = [one.learn_epoch(0, random_batches()) for one in (plain, telling)]
    for key in ("world_model_loss", "actor_loss", "critic_loss"):
        assert results[0][key] == results[1][key]


@pytest.mark.usefixtures("ray_two_cpus")
@pytest.mark.parametrize(
    ("method", "settings"), [("ARROW", ALL), ("DV3", OF_DV3)], ids=["ARROW", "DV3"]
)
def test_a_run_resumed_or_with_a_killed_replay_ends_as_an_undisturbed_one(
    method, settings, tmp_path
):
    config = config_with(method, **settings)
    algorithm = config.build_algo()
    train(algorithm, 2)
    algorithm.save_to_path(tmp_path / "half")
    train(algorithm, 2)
    whole = outcome(algorithm)
    algorithm.stop()
    if method == "ARROW":
        assert whole[2]["ltdm_probability"] != config.ltdm_probability

    resumed = {"ARROW": ARROW, "DV3": DV3}[method].from_checkpoint(tmp_path / "half")
    train(resumed, 1)
    os.kill(ray.get(resumed.replay.pid.remote()), signal.SIGKILL)
    train(resumed, 1)
    assert outcome(resumed) == whole
    resumed.stop()


@pytest.mark.usefixtures("ray_two_cpus")
def test_two_learners_stay_equal_and_tell_the_losses_of_their_own_sequences():
    config = config_with("ARROW", **ALL).continual(diagnostics=True)
    config.learners(num_learners=2, num_cpus_per_learner=0)
    algorithm = config.build_algo()
    told = []
    learned = algorithm.replay.learned

    class Listening:
        def __getattr__(self, name):
            return self if name == "learned" else getattr(replay, name)

        def remote(self, *args):
            told.append(args)
            return learned.remote(*args)

    replay, algorithm.replay = algorithm.replay, Listening()
    train(algorithm, 2)
    algorithm.replay = replay
    assert [(epoch, losses.shape) for epoch, losses, *_ in told] == [
        (0, (4, 4)),
        (1, (4, 4)),
    ]
    shards = [losses.reshape(4, 2, 2) for _, losses, *_ in told]
    assert all((part[:, 0] != part[:, 1]).all() for part in shards)
    calls = algorithm.learner_group.foreach_learner(weight_sum)
    first, second = [call.get() for call in calls]
    assert first == second
    rows = (algorithm.run_directory.local / "inside.csv").read_text().splitlines()
    assert any(row.startswith("2,breakout,1,actor,agreement,1") for row in rows), rows
    algorithm.stop()


@pytest.mark.usefixtures("ray_two_cpus")
@pytest.mark.parametrize("rule", ["first_epoch", "after_change"])
def test_the_epoch_after_a_jump_of_the_loss_is_played_at_random(rule, monkeypatch):
    told = iter([2.0, 2.0, 9.0, 2.0])
    monkeypatch.setattr(
        dv3, "_take_sequence_losses", lambda learner: (0, np.full((4, 4), next(told)))
    )
    config = config_with("DV3", exploration_rule=rule)
    algorithm = config.continual(replay_capacity_chunks=6).build_algo()
    asked, play = [], algorithm.env_runner.sample

    def sample(**request):
        asked.append(request["epsilon"])
        return play(**request)

    monkeypatch.setattr(algorithm.env_runner, "sample", sample)
    train(algorithm, 4)
    assert asked == [1, 0, 0, 1 if rule == "after_change" else 0]
    algorithm.stop()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fifo_sampling": "odd"}, r"fifo_sampling \('odd'\) must be"),
        ({"ltdm_bounds": [0.5]}, r"ltdm_bounds \(\[0.5\]\) must be two numbers"),
        ({"ltdm_bounds": [0.0, 1.0]}, r"ltdm_bounds \(\[0.0, 1.0\]\)"),
        (
            {"ltdm_probability": "fraction", "ltdm_fraction_rule": "balanced"},
            r"ltdm_probability \('fraction'\) must be a number",
        ),
        (
            {"ltdm_fraction": 0.0, "ltdm_probability_rule": "balanced"},
            r"ltdm_probability_rule \('balanced'\) must be constant",
        ),
        ({"exploration_rule": "often"}, r"exploration_rule \('often'\) must be"),
    ],
)
def test_parts_that_cannot_be_combined_are_refused_by_name(settings, message):
    with pytest.raises(UserError, match=message):
        config_with("ARROW", **settings).validate()
