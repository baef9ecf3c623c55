"""Processes are killed at random moments; the scores must not show it.

Every test compares the run's evaluations.csv, byte for byte, and every chunk in replay
with those of a run in which nothing died. What is killed is a real process, with
SIGKILL.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
import ray

from rllib_arrow.replay import snapshot
from tests.algorithms.tiny import scores, tiny_config, train

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("ray_two_cpus")]

EPOCHS = 4
# What a run says of each kind that died.
TOLD = {
    "env_runner": "died in 'sample'",
    "evaluation_runner": "died in 'evaluate'",
    "replay": "the replay actor died",
}


def remote_config():
    config = tiny_config()
    config.env_runners(num_env_runners=2, num_cpus_per_env_runner=0)
    config.evaluation(evaluation_num_env_runners=1)
    config.evaluation_config = {"num_cpus_per_env_runner": 0}
    config.continual(replay_prefetch=2)
    return config


def outcome(algorithm, directory: Path) -> tuple[str, list[tuple]]:
    """Returns all scores, and all chunks in replay with their places in the stream."""
    ray.get(algorithm.replay.save.remote(directory.as_posix()))
    records = snapshot.load(directory)["records"]
    return scores(algorithm), [(r.serial, r.task, r.digest) for r in records]


@pytest.fixture(scope="module")
def undisturbed(ray_two_cpus, tmp_path_factory) -> tuple[str, list[tuple]]:
    algorithm = remote_config().build_algo()
    train(algorithm, EPOCHS)
    seen = outcome(algorithm, tmp_path_factory.mktemp("undisturbed"))
    algorithm.stop()
    return seen


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
@pytest.mark.parametrize("kind", list(TOLD))
def test_a_killed_worker_changes_nothing(kind, repeat, undisturbed, tmp_path):
    rng = random.Random(f"{kind} {repeat}")
    algorithm = remote_config().build_algo()
    results = train(algorithm, 1)
    for _ in range(EPOCHS - 1):
        killer = Killer(victims(algorithm, kind), rng.uniform(0.0, 1.5))
        killer.start()
        results += train(algorithm, 1)
        killer.join()
    assert outcome(algorithm, tmp_path) == undisturbed
    # One that dies while idle is back before it is asked, and there is nothing to tell.
    for line in filter(None, (result["recovered"] for result in results)):
        assert TOLD[kind] in line and line.endswith("nothing is lost")
    algorithm.stop()


@pytest.mark.parametrize("kind", list(TOLD))
def test_a_worker_that_dies_at_work_is_told_of(kind, undisturbed, tmp_path):
    algorithm = remote_config().build_algo()
    results = train(algorithm, 1)
    victim = victims(algorithm, kind)
    os.kill(victim, signal.SIGSTOP)  # so that the work is with it when it dies
    killer = Killer(victim, 1.0)
    killer.start()
    results += train(algorithm, EPOCHS - 1)
    assert TOLD[kind] in results[1]["recovered"]
    assert outcome(algorithm, tmp_path) == undisturbed
    algorithm.stop()
