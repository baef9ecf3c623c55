"""The callback decides which task is on, alone and beside a user's callbacks."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace

import pytest
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.callbacks.callbacks import RLlibCallback

from rllib_arrow import Curriculum, TaskScheduler
from rllib_arrow.curriculum.task_scheduler import (
    PlateauScheduler,
    evaluations_since_rise,
    with_scheduler,
)
from rllib_arrow.errors import UserError
from tests.algorithms.tiny import METHODS, digest, scores, tiny_config, train

PLAIN = {"suite": "minatar", "tasks": ["breakout", "freeway"], "epochs_per_task": 4}
PLATEAU = PLAIN | {"switch": {"rule": "plateau", "patience": 2, "min_rise": 0.5}}


class Counting(RLlibCallback):
    """A user's callback."""

    calls = 0

    def on_train_result(self, **kwargs) -> None:
        Counting.calls += 1


class EveryEpoch(TaskScheduler):
    """A user's rule, with a memory that has to survive a restore."""

    def __init__(self, epochs: int = 1):
        self.epochs, self.asked = epochs, 0

    def ends_early(self, algorithm, exposure, finished) -> bool:
        self.asked += 1
        return self.asked % self.epochs == 0

    def get_state(self):
        return {"asked": self.asked}

    def set_state(self, state):
        self.asked = state.get("asked", 0)


@pytest.mark.parametrize(
    ("values", "since"),
    [
        ([], 0),
        ([1.0], 0),
        ([1.0, 1.0, 1.0], 2),
        ([1.0, 2.0, 3.0], 0),
        ([3.0, 1.0, 2.0], 2),  # rises, but not above the best
        ([-5.0, -6.0, -4.0, -4.0], 1),
    ],
)
def test_a_rise_beats_the_best_before_it(values, since):
    assert evaluations_since_rise(values) == since


def test_a_rise_that_is_too_small_is_none():
    assert evaluations_since_rise([1.0, 1.4, 1.8], min_rise=0.5) == 0
    assert evaluations_since_rise([1.0, 1.4, 1.5], min_rise=0.5) == 2


def stand_in(curriculum: dict, returns: dict[int, float]) -> SimpleNamespace:
    """An algorithm whose task that is on scored so much at which epoch."""
    plan = Curriculum.from_dict(curriculum)
    rows = [
        {"epoch": epoch, "eval_task": task, "return_mean": score}
        for epoch, score in returns.items()
        for task in plan.task_names
    ]
    algorithm = SimpleNamespace(curriculum=plan, task=None, finished=0)
    algorithm.evaluator = SimpleNamespace(
        finished_rows=lambda: [r for r in rows if r["epoch"] <= algorithm.finished]
    )
    return algorithm


def played(scheduler: TaskScheduler, algorithm: SimpleNamespace) -> str:
    """The first letter of each epoch's task."""
    scheduler.on_algorithm_init(algorithm=algorithm)
    letters = ""
    while algorithm.task is not None:
        letters += algorithm.task[0]
        algorithm.finished = len(letters)
        scheduler.on_epoch_end(algorithm=algorithm, finished=len(letters))
    return letters


def test_a_plain_curriculum_is_played_as_planned():
    assert played(TaskScheduler(), stand_in(PLAIN, {})) == "bbbbffff"


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        # Never evaluated, or always rising: as planned.
        ({}, "bbbbffff"),
        ({e: float(e) for e in range(9)}, "bbbbffff"),
        # Never rising: two evaluations after the one an exposure begins with.
        (dict.fromkeys(range(9), 0.0), "bbff"),
        # A rise at epoch 1; then the second task has its own best to beat.
        ({0: 0.0, 1: 9.0, 2: 9.0, 3: 9.0, 4: 1.0, 5: 1.0, 6: 8.0}, "bbbff"),
        # Evaluated every other epoch: ends only after an evaluation.
        ({0: 1.0, 2: 1.0, 4: 1.0, 6: 1.0, 8: 1.0}, "bbbbffff"),
    ],
)
def test_a_plateau_ends_an_exposure(returns, expected):
    assert played(PlateauScheduler(), stand_in(PLATEAU, returns)) == expected


def test_a_users_callbacks_are_added_to_the_scheduler():
    plain, plateau = map(Curriculum.from_dict, (PLAIN, PLATEAU))
    for given in (Counting, [Counting], [TaskScheduler, Counting]):
        found = with_scheduler(given, plain)
        assert found == [TaskScheduler, Counting]
        assert with_scheduler(found, plain) == found
        assert with_scheduler(found, plateau) == [PlateauScheduler, Counting]
    own = partial(EveryEpoch, epochs=2)
    assert with_scheduler([Counting, own], plain) == [own, Counting]
    for rules in ([own, EveryEpoch], plain), (EveryEpoch, plateau):
        with pytest.raises(UserError, match=r"EveryEpoch.*one rule"):
            with_scheduler(*rules)


def tasks_of(results: list[dict]) -> list[str]:
    return [result["curriculum"]["task"][0] for result in results]


def test_a_user_hears_of_every_epoch_and_the_tasks_still_change(ray_two_cpus):
    heard = []
    config = tiny_config(epochs_per_task=1).callbacks(
        [Counting], on_train_result=lambda **kwargs: heard.append(1)
    )
    algorithm, Counting.calls = config.build_algo(), 0
    assert tasks_of(train(algorithm, 2)) == ["b", "s"]
    assert (Counting.calls, len(heard)) == (2, 2)
    algorithm.stop()


def test_a_users_rule_decides_and_goes_on_after_a_restore(ray_two_cpus, tmp_path):
    config = tiny_config(epochs_per_task=3, cycles=2)
    config.callbacks(partial(EveryEpoch, epochs=2))
    algorithm = config.build_algo()
    first = train(algorithm, 3)
    algorithm.save_to_path(tmp_path / "checkpoint")
    second = train(algorithm, 5)
    truth = digest(algorithm), scores(algorithm)
    algorithm.stop()
    assert tasks_of(first + second) == list("bbssbbss")
    assert second[-1]["done"] and not second[-2]["done"]
    recorded = (algorithm.run_directory.local / "curriculum.json").read_text()
    spans = [(e["start"], e["end"]) for e in json.loads(recorded)["exposures"]]
    assert spans == [(0, 2), (2, 4), (4, 6), (6, 8)]

    restored = Algorithm.from_checkpoint(tmp_path / "checkpoint")
    assert tasks_of(train(restored, 5)) == list("sbbss")
    assert (digest(restored), scores(restored)) == truth
    file = restored.run_directory.local / "curriculum.json"
    assert file.read_text() == recorded
    restored.stop()


@pytest.mark.parametrize("method", METHODS)
def test_a_plateau_run_goes_on_as_if_it_had_never_stopped(
    ray_two_cpus, tmp_path, method
):
    # No score rises by so much, so that every second evaluation ends an exposure.
    switch = {"rule": "plateau", "patience": 2, "min_rise": 1e9}
    algorithm = tiny_config(method, epochs_per_task=4, switch=switch).build_algo()
    train(algorithm, 2)
    algorithm.save_to_path(tmp_path / "checkpoint")
    [*_, last] = train(algorithm, 2)
    assert last["done"] and last["curriculum"]["total_epochs"] == 4
    truth = digest(algorithm), scores(algorithm)
    algorithm.stop()
    trained = [line.split(",")[6] for line in truth[1].splitlines()[1::2]]
    assert trained == ["", *["breakout"] * 2, *["space_invaders"] * 2]

    restored = Algorithm.from_checkpoint(tmp_path / "checkpoint")
    train(restored, 2)
    assert (digest(restored), scores(restored)) == truth
    restored.stop()
