"""Which task is on: the one place that decides it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.utils import force_list

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.errors import UserError

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

logger = logging.getLogger(__name__)


class TaskScheduler(RLlibCallback):
    """Sets `algorithm.task`, the task that every request to an env runner carries.

    An exposure lasts as long as the curriculum plans. A subclass with a rule of its
    own overrides `ends_early` and is given to `config.callbacks(...)`.
    """

    def ends_early(
        self, algorithm: Algorithm, exposure: Exposure, finished: int
    ) -> bool:
        """Returns whether the exposure ends with the epoch just finished.

        Asked after every epoch but the exposure's last planned one.

        Args:
            algorithm: With `evaluator.rows()`, the scores so far, among others.
            exposure: Under way since the epoch `exposure.start`.
            finished: How many epochs are finished, over all tasks.
        """
        return False

    def get_state(self) -> dict[str, Any]:
        """Returns what a rule has to remember, for checkpoints."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` returned."""

    # When it is asked.

    def on_algorithm_init(self, *, algorithm: Algorithm, **kwargs: Any) -> None:
        self.set_task(algorithm, epoch=0)

    def on_epoch_end(self, *, algorithm: Algorithm, finished: int) -> None:
        """Ends the exposure if the rule says so, and sets the next epoch's task."""
        exposure = algorithm.curriculum.exposure_at(finished - 1)
        if finished < exposure.end and self.ends_early(algorithm, exposure, finished):
            algorithm.curriculum = algorithm.curriculum.ended_early(finished)
        self.set_task(algorithm, finished)
        if algorithm.task not in (None, exposure.task):
            logger.info("Task switch: %s -> %s", exposure.task, algorithm.task)

    def set_task(self, algorithm: Algorithm, epoch: int) -> None:
        """Sets the task of an epoch that is to begin; None after the last one."""
        curriculum = algorithm.curriculum
        ended = epoch >= curriculum.total_epochs
        algorithm.task = None if ended else curriculum.task_at(epoch)


class PlateauScheduler(TaskScheduler):
    """Ends an exposure when its task's score has not risen for some evaluations.

    `curriculum: {..., switch: {rule: plateau, patience: K, min_rise: D}}`: after K
    evaluations in a row in which the task that is on did not beat its best score of
    this exposure by more than D. The scores are all it needs, and those are saved.
    """

    def ends_early(
        self, algorithm: Algorithm, exposure: Exposure, finished: int
    ) -> bool:
        # Scores that are still being played count too, or the rule would depend on
        # how fast they come in.
        scores = {
            row["epoch"]: row["return_mean"]
            for row in algorithm.evaluator.finished_rows()
            if row["eval_task"] == exposure.task and row["epoch"] >= exposure.start
        }
        if finished not in scores:
            return False
        rule = algorithm.curriculum.switch
        since_rise = evaluations_since_rise(scores.values(), rule["min_rise"])
        return since_rise >= rule["patience"]


def evaluations_since_rise(scores: Iterable[float], min_rise: float = 0.0) -> int:
    """Returns how many scores came since the last that beat the best before it."""
    best, since = float("-inf"), 0
    for score in scores:
        if score > best + min_rise or best == float("-inf"):
            best, since = score, 0
        else:
            since += 1
    return since


RULES = {"plateau": PlateauScheduler}  # by the name in `curriculum.switch.rule`


def with_scheduler(callbacks: Any, curriculum: Curriculum) -> list[Any]:
    """Returns a user's callback classes, with the scheduler of the tasks before them.

    A user's own scheduler takes the place of the curriculum's.
    """
    ours = {TaskScheduler, *RULES.values()}
    users = [entry for entry in force_list(callbacks) if class_of(entry) not in ours]
    own = [entry for entry in users if issubclass(class_of(entry), TaskScheduler)]
    rules = [class_of(entry).__name__ for entry in own]
    if curriculum.switch:
        rules.append(f"curriculum.switch {dict(curriculum.switch)}")
    if len(rules) > 1:
        raise UserError(
            f"callbacks ({', '.join(rules)}) must hold one rule for switching tasks."
        )
    if own:
        return [*own, *(entry for entry in users if entry is not own[0])]
    rule = RULES[curriculum.switch["rule"]] if curriculum.switch else TaskScheduler
    return [rule, *users]


def class_of(entry: Any) -> type:
    """Returns the class of a callback, which may come with arguments in a partial.

    A function that makes one is called, once, to see what it makes.
    """
    found = entry.func if isinstance(entry, partial) else entry
    return found if isinstance(found, type) else _made_by(entry)


@cache
def _made_by(function: Callable[[], Any]) -> type:
    return type(function())
