"""Epochs that are collected while the one before them is learned from."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rllib_arrow import TaskScheduler
from rllib_arrow.algorithms.collecting import Collector
from rllib_arrow.algorithms.within_epoch import PhaseTeller
from rllib_arrow.errors import UserError
from tests.algorithms.tiny import digest, scores, tiny_config, train

INFO = {"frames": 8, "seconds": 2.0, "episode_returns": [], "episode_lengths": []}


class Driver(SimpleNamespace):
    """A driver whose runners answer at once, and which notes when they are asked."""

    config = SimpleNamespace(num_collectors=2, num_env_runners=2, sample_timeout_s=None)
    teller, env_runner_group = PhaseTeller(), None

    def __init__(self):
        super().__init__(events=[], learned=0)

    def weights(self) -> str:
        return f"weights {self.learned}"

    def epsilon(self, epoch: int) -> float:
        return 1.0 if epoch == 0 else 0.0

    def phase(self, doing: str) -> None:
        return None

    def call_runners(self, group, method, requests, **options) -> SimpleNamespace:
        self.events += [("asked", *request.values()) for request in requests]
        played = [
            (f"rows of part {request['part']}", dict(INFO)) for request in requests
        ]
        return SimpleNamespace(results=lambda: self.events.append("waited") or played)


def test_an_epoch_begun_ahead_is_played_with_the_weights_from_before():
    driver = Driver()
    collector = Collector(driver)
    collector.begin(3, "breakout")
    assert driver.events == [
        ("asked", 3, "breakout", "weights 0", 0.0, 0),
        ("asked", 3, "breakout", "weights 0", 0.0, 1),
    ]
    driver.learned = 1
    streams, summary = collector.collect(3, "breakout")
    assert driver.events[2:] == ["waited"]
    assert streams == ["rows of part 0", "rows of part 1"]
    assert summary["collect_s"] < 1 and summary["frames_per_s"] == 8
    # The next one was not begun, so it is played as the policy stands.
    collector.collect(4, "asterix")
    assert ("asked", 4, "asterix", "weights 1", 0.0, 0) in driver.events


def quick_learner():
    """One epoch changes its actions."""
    return tiny_config().training(actor_lr=0.1).continual(collect_ahead=True)


def test_epochs_collected_ahead_are_the_same_anywhere_and_after_a_restart(
    tmp_path, ray_two_cpus
):
    here = quick_learner().build_algo()
    train(here, 4)
    truth = digest(here), scores(here)
    here.stop()

    config = quick_learner()
    config.env_runners(num_env_runners=1, num_cpus_per_env_runner=0)
    config.learners(num_learners=1, num_cpus_per_learner=0)
    config.evaluation(
        evaluation_num_env_runners=1, evaluation_parallel_to_training=True
    )
    apart = config.build_algo()
    train(apart, 2)
    # The epoch ahead is of the next task, and the scores of this one are under way.
    path = apart.save_to_path(tmp_path / "checkpoint")
    state = apart.get_state(components=["scores", "collected_ahead"])
    assert state["evaluating"] and max(row["epoch"] for row in state["scores"]) == 1
    assert state["collected_ahead"]
    train(apart, 2)
    assert (digest(apart), scores(apart)) == truth
    apart.restore_from_path(path)
    train(apart, 2)
    assert (digest(apart), scores(apart)) == truth
    # It matters: without the older weights another epoch would be played.
    apart.restore_from_path(path)
    apart.collector.set_state(None)
    train(apart, 2)
    assert digest(apart) != truth[0]
    apart.stop()


class Whim(TaskScheduler):
    """Decides about the next task when an epoch is over."""


def test_a_task_that_is_not_known_ahead_is_not_collected_ahead():
    switch = {"rule": "plateau", "patience": 2}
    config = tiny_config(switch=switch).continual(collect_ahead=True)
    with pytest.raises(UserError, match=r"collect_ahead.*PlateauScheduler") as no:
        config.validate()
    assert "\n" not in str(no.value)
    config = tiny_config().continual(collect_ahead=True).callbacks(Whim)
    with pytest.raises(UserError, match=r"collect_ahead.*Whim"):
        config.validate()


def test_what_waits_for_an_epochs_losses_cannot_be_collected_ahead():
    config = tiny_config().training(exploration_rule="after_change")
    config.validate()
    with pytest.raises(UserError, match=r"collect_ahead.*exploration_rule"):
        config.continual(collect_ahead=True).validate()
