"""Evaluates all tasks of a run and keeps its score table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ray.rllib.callbacks.utils import make_callback

from rllib_arrow.algorithms.runner_calls import RunnerCalls
from rllib_arrow.evaluation.protocol import EpisodeScores
from rllib_arrow.runs.live import live_metrics

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
        self._fire("on_evaluate_start")
        group = self._algorithm.eval_env_runner_group
        if group is not None and group.num_remote_env_runners() > 0:
            calls = RunnerCalls(
                group,
                self._algorithm.restore_env_runners,
                "evaluate",
                self._requests(epoch, self._curriculum.task_names),
                tell=self._algorithm.note_recovery,
            )
            self._pending = (epoch, calls)
        else:
            self._record(epoch, self.score(epoch, self._curriculum.task_names))

    def score(
        self, epoch: int, tasks: Sequence[str], episodes: int | None = None
    ) -> list[dict[str, Any]]:
        """Evaluates tasks here and now; returns rows and leaves the table alone."""
        runner = self._algorithm.eval_env_runner or self._algorithm.env_runner
        requests = self._requests(epoch, tasks, episodes)
        scores = [runner.evaluate(**request) for request in requests]
        return self._rows_of(epoch, tasks, scores)

    def finish(self) -> dict[str, Any]:
        """Waits for the evaluation under way, if any; returns the latest scores."""
        if self._pending:
            epoch, calls = self._pending
            self._pending = None
            tasks = self._curriculum.task_names
            self._record(epoch, self._rows_of(epoch, tasks, calls.results()))
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

    def _record(self, epoch: int, rows: list[dict[str, Any]]) -> None:
        self._rows += rows
        self._algorithm.run_directory.write_scores(self._rows)
        metrics = live_metrics(self._rows, self._curriculum)
        self._latest = {"epoch": epoch} | metrics
        for row in rows:
            self._latest[row["eval_task"]] = {
                key: row[key] for key in ("return_mean", "return_std", "episodes")
            }
        self._fire("on_evaluate_end", evaluation_metrics=self._latest)

    def _fire(self, event: str, **more: Any) -> None:
        """Tells RLlib's callbacks, as RLlib's own evaluation does."""
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
