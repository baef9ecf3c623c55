"""Processes are killed at random moments; the scores must not show it.

Every test compares the run's evaluations.csv, byte for byte, with that of a run in
which nothing died. What is killed is a real process, with SIGKILL.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import pytest
import ray

from tests.algorithms.tiny import scores, tiny_config, train

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("ray_two_cpus")]

EPOCHS = 4


def remote_config():
    config = tiny_config()
    config.env_runners(num_env_runners=2, num_cpus_per_env_runner=0)
    config.evaluation(evaluation_num_env_runners=1)
    config.evaluation_config = {"num_cpus_per_env_runner": 0}
    config.continual(replay_prefetch=2)
    return config


@pytest.fixture(scope="module")
def undisturbed(ray_two_cpus) -> str:
    algorithm = remote_config().build_algo()
    train(algorithm, EPOCHS)
    table = scores(algorithm)
    algorithm.stop()
    return table


def pid_of_runner(group) -> int:
    actor = next(iter(group._worker_manager.actors().values()))
    for _ in range(60):
        try:
            return ray.get(actor.apply.remote(lambda _: os.getpid()))
        except ray.exceptions.RayActorError:
            time.sleep(1)  # killed while idle, and not back yet
    raise TimeoutError("the runner did not come back")


def victims(algorithm, kind: str) -> int:
    """Returns the process of one part of the run."""
    if kind == "env_runner":
        return pid_of_runner(algorithm.env_runner_group)
    if kind == "evaluation_runner":
        return pid_of_runner(algorithm.eval_env_runner_group)
    return ray.get(algorithm.replay.pid.remote())


class Killer(threading.Thread):
    """Kills one process after a random while."""

    def __init__(self, pid: int, delay_s: float):
        super().__init__(daemon=True)
        self.pid, self.delay_s = pid, delay_s

    def run(self) -> None:
        time.sleep(self.delay_s)
        os.kill(self.pid, signal.SIGKILL)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("repeat", range(3))
@pytest.mark.parametrize("kind", ["env_runner", "evaluation_runner", "replay"])
def test_a_killed_worker_changes_nothing(kind, repeat, undisturbed):
    rng = random.Random(f"{kind} {repeat}")
    algorithm = remote_config().build_algo()
    train(algorithm, 1)
    for _ in range(EPOCHS - 1):
        killer = Killer(victims(algorithm, kind), rng.uniform(0.0, 1.5))
        killer.start()
        train(algorithm, 1)
        killer.join()
    assert scores(algorithm) == undisturbed
    algorithm.stop()
