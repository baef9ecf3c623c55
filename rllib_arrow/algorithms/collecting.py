"""Has the env runners play epochs: when they are wanted, or one epoch ahead."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ray
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS

from rllib_arrow.algorithms.recorder import summary_of
from rllib_arrow.algorithms.within_epoch import COLLECTING

if TYPE_CHECKING:
    from rllib_arrow.algorithms.workers import DrivesWorkers

Played = list[tuple[ray.ObjectRef, dict[str, Any]]]  # streams, and a word about them


class Collector:
    """Asks the env runners for epochs; frames stay references.

    What an epoch holds depends on the weights that play it, not on when or where it is
    played. So of an epoch that is begun ahead, a checkpoint has the weights.
    """

    def __init__(self, algorithm: DrivesWorkers):
        self._algorithm = algorithm
        self._weights: ray.ObjectRef | None = None  # of the epoch begun ahead
        self._wait: Callable[[], Played] | None = None

    def begin(self, epoch: int, task: str) -> None:
        """Has the runners play an epoch as the policy now stands, without waiting."""
        self._weights = self._algorithm.weights()
        self._wait = self._start(epoch, task, self._weights)

    def collect(
        self, epoch: int, task: str
    ) -> tuple[list[ray.ObjectRef], dict[str, Any]]:
        """Returns an epoch's streams of rows, and a summary for the results.

        It is the epoch that was begun ahead, or else played as the policy now stands.
        """
        algorithm = self._algorithm
        algorithm.teller.tell(algorithm.phase(COLLECTING))
        weights = self._weights or algorithm.weights()
        began = time.perf_counter()
        played = (self._wait or self._start(epoch, task, weights))()
        self._weights = self._wait = None
        infos = [info for _, info in played]
        # What a user's callbacks logged on the runners.
        if logged := [info.pop("metrics") for info in infos if "metrics" in info]:
            algorithm.metrics.aggregate(logged, key=ENV_RUNNER_RESULTS)
        summary = summary_of(infos, time.perf_counter() - began)
        return [streams for streams, _ in played], summary

    def _start(
        self, epoch: int, task: str, weights: ray.ObjectRef
    ) -> Callable[[], Played]:
        """Has every runner play its part; returns how to wait for them."""
        algorithm, config = self._algorithm, self._algorithm.config
        shared = {"epoch": epoch, "task": task, "weights": weights}
        shared["epsilon"] = algorithm.epsilon(epoch)
        parts = [shared | {"part": i} for i in range(config.num_collectors)]
        if config.num_env_runners == 0:
            streams, info = algorithm.env_runner.sample(**parts[0])
            played = [(ray.put(streams), info)]
            return lambda: played
        return algorithm.call_runners(
            algorithm.env_runner_group,
            "sample",
            parts,
            num_returns=2,
            timeout_s=config.sample_timeout_s,
        ).results

    def get_state(self) -> dict[str, Any] | None:
        """Returns the weights that play the epoch begun ahead; None without one."""
        return None if self._weights is None else ray.get(self._weights)

    def set_state(self, weights: dict[str, Any] | None) -> None:
        """Takes back what `get_state` returned; the epoch is played again with it."""
        self._weights = None if weights is None else ray.put(weights)
        self._wait = None
