"""The epoch that all algorithms of this package share: collect, learn, evaluate."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EVALUATION_RESULTS,
    LEARNER_RESULTS,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
)

from rllib_arrow.algorithms import on_learners
from rllib_arrow.algorithms.collecting import Collector
from rllib_arrow.algorithms.continual_config import ContinualConfig
from rllib_arrow.algorithms.within_epoch import LEARNING
from rllib_arrow.algorithms.workers import DrivesWorkers
from rllib_arrow.curriculum.task_scheduler import TaskScheduler
from rllib_arrow.envs.probe import warn_of_ignored_seeds
from rllib_arrow.errors import UserError
from rllib_arrow.evaluation.evaluator import Evaluator
from rllib_arrow.inside.diary import Diary
from rllib_arrow.ray_private import storage_of
from rllib_arrow.replay.journal import start_journaled_replay
from rllib_arrow.runs.directory import RunDirectory

SCORES = "scores"
EVALUATING = "evaluating"
COLLECTED_AHEAD = "collected_ahead"
SCHEDULE = "schedule"
INSIDE = "inside"
GOODBYE_S = 10.0  # for the replay actor to tidy up


class ContinualAlgorithm(DrivesWorkers):
    """Mixed in before the algorithm whose learner it drives.

    Everything random is derived from the seed and the epoch, and the replay actor
    keeps a journal, so any part that dies is replaced and asked again.
    """

    config: ContinualConfig

    @override(Algorithm)
    def setup(self, config: ContinualConfig) -> None:
        self.run_directory: RunDirectory | None = None
        self._epoch_results: dict[str, Any] = {}
        self.curriculum = self.config.curriculum_object()
        self.task = None  # set by the task scheduler
        super().setup(config)
        self._learning_rates = self.call_learners(on_learners.learning_rates)[0]
        self.collector = Collector(self)
        self.evaluator = Evaluator(self)
        self.diary = Diary(self) if self.config.diagnostics else None
        if not self.to_act:
            self._start_run()

    def _start_run(self) -> None:
        """Makes what training needs: the run's directory and its replay."""
        self.run_directory = RunDirectory(self.logdir, storage_of(self))
        self._write_curriculum()
        warn_of_ignored_seeds(
            self.curriculum.suite,
            self.curriculum.tasks,
            self.config.env_options,
            self.config.sample_timeout_s,
        )
        self.replay = start_journaled_replay(
            self.config.replay_settings(),
            self.run_directory.local / "replay_journal",
            self.config.custom_resources_for_replay,
        )

    def _write_curriculum(self) -> None:
        if self.run_directory is not None:
            trained = self.curriculum.exposures if self.curriculum.early_ends else None
            self.run_directory.write_curriculum(
                self.curriculum, self.config.frames_per_epoch, trained
            )

    @property
    def task_scheduler(self) -> TaskScheduler:
        """The callback that decides which task is on."""
        return next(c for c in self.callbacks if isinstance(c, TaskScheduler))

    # The journey of one epoch.

    @override(Algorithm)
    def training_step(self) -> None:
        self.require_replay("trained")
        epoch = self.iteration
        if self.task is None:
            raise UserError(
                f"The curriculum ends after {self.curriculum.total_epochs} epochs; "
                "give it more epochs_per_task or cycles to train on."
            )
        self._epoch_results = {}
        if epoch == 0 and self.config.evaluation_interval:
            self.evaluator.start(epoch)
        streams = self._collect(epoch)
        self._store(epoch, streams)
        self._collect_ahead(epoch + 1)
        self._learn(epoch)

    def _collect(self, epoch: int) -> list[ray.ObjectRef]:
        """Returns the streams of rows of the epoch, by reference."""
        streams, summary = self.collector.collect(epoch, self.task)
        self._epoch_results |= summary
        return streams

    def epsilon(self, epoch: int) -> float:
        """Returns how likely an action of the epoch is a random one."""
        return self.config.epsilon_at(epoch)

    def _collect_ahead(self, epoch: int) -> None:
        """Has the next epoch begun beside learning, if that is wanted."""
        if self.config.collect_ahead and epoch < self.curriculum.total_epochs:
            self.collector.begin(epoch, self.curriculum.task_at(epoch))

    def _store(self, epoch: int, streams: list[ray.ObjectRef]) -> None:
        """Hands the epoch to replay, which has it on disk before it answers."""
        began = time.perf_counter()
        stats = ray.get(self.replay.store.remote(epoch, self.task, *streams))
        if stats.pop("restarted"):
            self.note_recovery("the replay actor died and is back, nothing is lost")
        self._epoch_results["replay"] = stats
        self._epoch_results["store_s"] = time.perf_counter() - began

    def _learn(self, epoch: int) -> None:
        """Has every learner work through the epoch's minibatches."""
        began = time.perf_counter()
        results = self.call_learners(
            partial(
                on_learners.learn_epoch,
                replay=self.replay,
                epoch=epoch,
                on_progress=self.teller.updates(self.phase(LEARNING)),
            )
        )
        self.forget_weights()
        means = {k: float(np.mean([r[k] for r in results])) for k in results[0]}
        self._epoch_results[LEARNER_RESULTS] = {DEFAULT_MODULE_ID: means}
        self._epoch_results["updates_per_s"] = means["updates_per_s"]
        self._epoch_results["learn_s"] = time.perf_counter() - began

    # Evaluation: RLlib decides when, the paper's protocol decides how.

    @override(Algorithm)
    def evaluate(self, parallel_train_future: Any = None) -> dict[str, Any]:
        """Evaluates all tasks with the policy as it stands, and returns the scores."""
        self.evaluator.start(self.iteration)
        self.evaluator.finish()
        return self.evaluator.latest()

    @override(Algorithm)
    def _run_one_evaluation(self, parallel_train_future: Any = None) -> dict[str, Any]:
        self.evaluator.start(self.iteration + 1)
        return {}

    @override(Algorithm)
    def _run_one_training_iteration_and_evaluation_in_parallel(self) -> tuple:
        # Evaluation runs on its own runners while the *next* epoch trains, with the
        # weights it was started with; so the row belongs to the epoch it names.
        trained, context = self._run_one_training_iteration()
        return trained, self._run_one_evaluation(), context

    @override(Algorithm)
    def _compile_iteration_results(self, *, train_results, eval_results) -> dict:
        results = super()._compile_iteration_results(
            train_results=train_results, eval_results=eval_results
        )
        finished = self.iteration + 1
        if self.config.evaluation_parallel_to_training and self.evaluator.rows():
            self.evaluator.finish_if_over()
        else:
            self.evaluator.finish()
        progress = self._end_epoch(finished)
        last = progress["next_task"] is None
        if self.diary is not None:
            self._look_inside(finished, ended=last or progress["switch"])
        if last:
            if self.config.evaluation_interval:
                self.evaluator.start(finished)
            self.evaluator.finish()
        seen = results.get(ENV_RUNNER_RESULTS, {})
        results |= self._epoch_results
        results[ENV_RUNNER_RESULTS] = seen | results[ENV_RUNNER_RESULTS]
        results["curriculum"] = progress
        results["frames"] = finished * self.config.frames_per_epoch
        results[NUM_ENV_STEPS_SAMPLED_LIFETIME] = results["frames"]
        results["done"] = last
        results["recovered"] = self.take_recoveries()
        # Repeated until there are new ones: what Tune goes by must not be missing.
        if latest := self.evaluator.latest():
            results[EVALUATION_RESULTS] = latest
        return results

    def _end_epoch(self, finished: int) -> dict[str, Any]:
        """Has the scheduler set the next task; returns where the curriculum stands."""
        task, before = self.task, self.curriculum
        self.task_scheduler.on_epoch_end(algorithm=self, finished=finished)
        if self.curriculum != before:
            self._write_curriculum()
        return {
            "epoch": finished,
            "total_epochs": self.curriculum.total_epochs,
            "task": task,
            "next_task": self.task,
            "switch": self.task not in (None, task),
        }

    def _look_inside(self, finished: int, ended: bool) -> None:
        """Adds what diagnostics find to what the learners told of the epoch."""
        learned = self._epoch_results[LEARNER_RESULTS][DEFAULT_MODULE_ID]
        stats = self._epoch_results["replay"]
        if seen := self.diary.end_epoch(finished, ended, stats, learned):
            learned[INSIDE] = seen

    # Checkpoints.

    @override(Algorithm)
    def get_state(self, components=None, *, not_components=None, **kwargs) -> dict:
        state = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(SCORES, components, not_components):
            # Not waited for if it can be played again, with the weights saved here.
            state[EVALUATING] = self.evaluator.is_under_way(self.iteration)
            state[SCORES] = self.evaluator.rows()
        ahead = self._check_component(COLLECTED_AHEAD, components, not_components)
        if ahead and self.config.collect_ahead:
            state[COLLECTED_AHEAD] = self.collector.get_state()
        if self._check_component(SCHEDULE, components, not_components):
            state[SCHEDULE] = {
                "early_ends": list(self.curriculum.early_ends),
                "rule": self.task_scheduler.get_state(),
            }
        if self.diary and self._check_component(INSIDE, components, not_components):
            state[INSIDE] = self.diary.get_state()
        return state

    @override(Algorithm)
    def set_state(self, state: dict) -> None:
        super().set_state(state)
        self.forget_weights()
        # RLlib restores the optimisers' learning rates; the configuration's count.
        self.call_learners(
            partial(on_learners.set_learning_rates, rates=self._learning_rates)
        )
        if SCORES in state:
            self.evaluator.set_rows(state[SCORES])
        if SCHEDULE in state:
            ends = tuple(state[SCHEDULE]["early_ends"])
            plan = self.config.curriculum_object()
            self.curriculum = replace(plan, early_ends=ends)
            self.task_scheduler.set_state(state[SCHEDULE]["rule"])
        self.task_scheduler.set_task(self, self.iteration)
        self._write_curriculum()
        if self.config.collect_ahead:
            self.collector.set_state(state.get(COLLECTED_AHEAD))
        if state.get(EVALUATING) and not self.to_act:
            self.evaluator.start(self.iteration)
        if self.diary and INSIDE in state:
            self.diary.set_state(state[INSIDE])

    @override(Algorithm)
    def cleanup(self) -> None:
        if self.replay is not None:
            with suppress(ray.exceptions.RayError):  # it may be dead, or its node
                ray.get(self.replay.forget_journal.remote(), timeout=GOODBYE_S)
            ray.kill(self.replay)
            self.replay = None
        super().cleanup()
