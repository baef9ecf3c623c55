"""Evaluates all tasks of a run and keeps its score table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import ray
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EPISODE_RETURN_MEAN,
    NUM_EPISODES,
)

from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.evaluation.protocol import EpisodeScores
from rllib_arrow.runs.directory import RunDirectory
from rllib_arrow.runs.live import live_metrics

Request = dict[str, Any]  # the keyword arguments of an env runner's `evaluate`


class Playing(Protocol):
    """Episodes that are being played on evaluation runners."""

    def are_over(self) -> bool:
        """Whether they are all played; does not wait."""

    def results(self) -> list[EpisodeScores]:
        """Waits until they are, and returns the scores, request by request."""


class Evaluated(Protocol):
    """What an evaluator needs of the algorithm whose policy it scores."""

    config: Any
    curriculum: Curriculum
    run_directory: RunDirectory | None
    callbacks: list[Any]
    metrics: Any

    def note_recovery(self, line: str) -> None:
        """Takes a line that the user has to see."""

    def weights(self) -> ray.ObjectRef:
        """Returns a reference to what a runner needs to act as the policy stands."""

    def play_here(self, requests: list[Request]) -> list[EpisodeScores]:
        """Answers the requests in this process."""

    def play_beside(self, requests: list[Request]) -> Playing | None:
        """Has the evaluation runners answer, if there are any."""


class Evaluator:
    """At most one evaluation at a time, on the evaluation runners or in the driver.

    `start` hands out the work with the weights of that moment; `finish` waits for it
    and writes `evaluations.csv`. Which runner plays which task changes nothing.
    """

    def __init__(self, algorithm: Evaluated):
        self._algorithm = algorithm
        self._config = algorithm.config
        self._rows: list[dict[str, Any]] = []
        self._pending: tuple[int, Playing] | None = None

    @property
    def _curriculum(self) -> Curriculum:
        return self._algorithm.curriculum

    def start(self, epoch: int) -> None:
        """Begins the evaluation of an epoch, unless it has been evaluated already."""
        if self._pending and self._pending[0] == epoch:
            return
        self.finish()
        if any(row["epoch"] == epoch for row in self._rows):
            return
        self._fire("on_evaluate_start")
        tasks = self._curriculum.task_names
        playing = self._algorithm.play_beside(self._requests(epoch, tasks))
        if playing is None:
            self._record(self.score(epoch, tasks))
        else:
            self._pending = (epoch, playing)

    def score(
        self, epoch: int, tasks: Sequence[str], episodes: int | None = None
    ) -> list[dict[str, Any]]:
        """Evaluates tasks here and now; returns rows and leaves the table alone."""
        scores = self._algorithm.play_here(self._requests(epoch, tasks, episodes))
        return self._rows_of(epoch, tasks, scores)

    def finish(self) -> None:
        """Waits for the evaluation under way, if any, and writes its rows."""
        if self._pending:
            epoch, playing = self._pending
            self._pending = None
            tasks = self._curriculum.task_names
            self._record(self._rows_of(epoch, tasks, playing.results()))

    def finish_if_over(self) -> None:
        """Writes the rows of the evaluation under way if nobody has to wait for it."""
        if self._pending and self._pending[1].are_over():
            self.finish()

    def latest(self) -> dict[str, Any]:
        """Returns the scores of the last epoch that was evaluated; {} before any."""
        if not self._rows:
            return {}
        epoch = self._rows[-1]["epoch"]
        scores = {"epoch": epoch} | live_metrics(self._rows, self._curriculum)
        rows = [row for row in self._rows if row["epoch"] == epoch]
        for row in rows:
            keys = ("return_mean", "return_std", "episodes")
            scores[row["eval_task"]] = {key: row[key] for key in keys}
        # Where RLlib's users and Tune's look: raw returns, the mean over all tasks.
        scores[ENV_RUNNER_RESULTS] = {
            EPISODE_RETURN_MEAN: float(np.mean([row["return_mean"] for row in rows])),
            NUM_EPISODES: sum(row["episodes"] for row in rows),
        }
        return scores

    def is_under_way(self, epoch: int) -> bool:
        """Whether that epoch's evaluation is unfinished, having waited for others."""
        if self._pending and self._pending[0] != epoch:
            self.finish()
        return self._pending is not None

    def rows(self) -> list[dict[str, Any]]:
        """Returns the rows of all evaluations that are finished."""
        return list(self._rows)

    def finished_rows(self) -> list[dict[str, Any]]:
        """Returns all rows, having waited for those under way."""
        self.finish()
        return self._rows

    def set_rows(self, rows: list[dict[str, Any]]) -> None:
        """Takes the rows of a checkpoint and writes them out again.

        Under the present names of method and setting: settings may have changed, and a
        run that got a second cycle is one of two cycles.
        """
        setting = self._config.curriculum_object().setting
        name = {"method": self._config.reported_method, "setting": setting}
        self._pending, self._rows = None, [row | name for row in rows]
        if self._rows:
            self._write()

    def _requests(
        self, epoch: int, tasks: Sequence[str], episodes: int | None = None
    ) -> list[dict[str, Any]]:
        shared = {
            "epoch": epoch,
            "episodes": episodes or self._config.evaluation_duration,
            "weights": self._algorithm.weights(),
        }
        return [shared | {"task": task} for task in tasks]

    def _rows_of(
        self, epoch: int, tasks: Sequence[str], scores: list[EpisodeScores]
    ) -> list[dict[str, Any]]:
        self._tell_of_cuts(tasks, scores)
        shared = {
            "method": self._config.reported_method,
            "suite": self._curriculum.suite,
            "setting": self._curriculum.setting,
            "seed": self._config.seed,
            "epoch": epoch,
            "frames": epoch * self._config.frames_per_epoch,
            "trained_task": self._curriculum.task_at(epoch - 1) if epoch else "",
        }
        return [
            shared
            | {
                "eval_task": task,
                "return_mean": score.mean,
                "return_std": score.std,
                "episodes": len(score.returns),
            }
            for task, score in zip(tasks, scores, strict=True)
        ]

    def _tell_of_cuts(self, tasks: Sequence[str], scores: list[EpisodeScores]) -> None:
        name = "max_steps_per_evaluated_episode"
        limit = f"{getattr(self._config, name):,} steps ({name})"
        for task, score in zip(tasks, scores, strict=True):
            if score.cut:
                self._algorithm.note_recovery(
                    f"{score.cut} of {len(score.returns)} evaluated episodes of "
                    f"{task} did not end within {limit} and were cut; their return so "
                    "far counts"
                )

    def _record(self, rows: list[dict[str, Any]]) -> None:
        self._rows += rows
        self._write()
        self._fire("on_evaluate_end", evaluation_metrics=self.latest())

    def _write(self) -> None:
        if self._algorithm.run_directory is not None:
            self._algorithm.run_directory.write_scores(self._rows)

    def _fire(self, event: str, **more: Any) -> None:
        """Calls RLlib's callbacks, as RLlib's own evaluation does."""
        make_callback(
            event,
            callbacks_objects=self._algorithm.callbacks,
            callbacks_functions=getattr(self._config, f"callbacks_{event}"),
            kwargs={
                "algorithm": self._algorithm,
                "metrics_logger": self._algorithm.metrics,
                **more,
            },
        )
