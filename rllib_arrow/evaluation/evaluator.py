"""Evaluates all tasks of a run and keeps its score table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ray

from rllib_arrow.algorithms.runner_calls import RunnerCalls
from rllib_arrow.evaluation.protocol import EpisodeScores
from rllib_arrow.evaluation.running import running_metrics_of

if TYPE_CHECKING:
    from rllib_arrow.algorithms.continual import ContinualAlgorithm


class Evaluator:
    """At most one evaluation at a time, on the evaluation runners or in the driver.

    `start` hands out the work with the weights of that moment; `finish` waits for it
    and writes `evaluations.csv`. Which runner plays which task changes nothing.
    """

    def __init__(self, algorithm: ContinualAlgorithm):
        self._algorithm = algorithm
        self._config = algorithm.config
        self._curriculum = algorithm.curriculum
        self._rows: list[dict[str, Any]] = []
        self._pending: tuple[int, RunnerCalls] | None = None
        self._latest: dict[str, Any] | None = None

    def start(self, epoch: int) -> None:
        """Begins the evaluation of an epoch, unless it has been evaluated already."""
        if self._pending and self._pending[0] == epoch:
            return
        self.finish()
        if any(row["epoch"] == epoch for row in self._rows):
            return
        group = self._algorithm.eval_env_runner_group
        requests = [
            {
                "task": task,
                "epoch": epoch,
                "episodes": self._config.evaluation_duration,
                "weights": self._algorithm.weights(),
            }
            for task in self._curriculum.task_names
        ]
        if group is not None and group.num_remote_env_runners() > 0:
            restore = self._algorithm.restore_env_runners
            calls = RunnerCalls(group, restore, "evaluate", requests)
            self._pending = (epoch, calls)
        else:
            runner = self._algorithm.eval_env_runner or self._algorithm.env_runner
            self._record(epoch, [runner.evaluate(**request) for request in requests])

    def finish(self) -> dict[str, Any]:
        """Waits for the evaluation under way, if any; returns the latest scores."""
        if self._pending:
            epoch, calls = self._pending
            self._pending = None
            self._record(epoch, calls.results())
        return self._latest or {}

    def take_latest(self) -> dict[str, Any] | None:
        """Returns the scores that came in since the last call, once."""
        latest, self._latest = self._latest, None
        return latest

    def finished_rows(self) -> list[dict[str, Any]]:
        """Returns all rows, having waited for those under way."""
        self.finish()
        return self._rows

    def set_rows(self, rows: list[dict[str, Any]]) -> None:
        """Takes the rows of a checkpoint and writes them out again."""
        self._pending, self._latest, self._rows = None, None, list(rows)
        if self._rows:
            self._algorithm.run_directory.write_scores(self._rows)

    def _record(self, epoch: int, scores: list[EpisodeScores]) -> None:
        tasks = self._curriculum.task_names
        shared = {
            "method": self._config.method,
            "suite": self._curriculum.suite,
            "setting": self._curriculum.setting,
            "seed": self._config.seed,
            "epoch": epoch,
            "frames": epoch * self._config.frames_per_epoch,
            "trained_task": self._curriculum.task_at(epoch - 1) if epoch else "",
        }
        new = [
            shared
            | {
                "eval_task": task,
                "return_mean": score.mean,
                "return_std": score.std,
                "episodes": len(score.returns),
            }
            for task, score in zip(tasks, scores, strict=True)
        ]
        self._rows += new
        self._algorithm.run_directory.write_scores(self._rows)
        self._latest = {"epoch": epoch} | running_metrics_of(
            self._rows, self._curriculum
        )
        for row in new:
            self._latest[row["eval_task"]] = {
                key: row[key] for key in ("return_mean", "return_std", "episodes")
            }
