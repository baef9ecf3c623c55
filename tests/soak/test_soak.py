"""Ten thousand updates and a hundred task switches: nothing may grow."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import ray
from ray._private.state import actors

from tests.algorithms.tiny import tiny_config

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("ray_two_cpus")]

CYCLES = 51  # two tasks an epoch each: 101 switches
UPDATES = 100
WARM_UP = 40


def resident_bytes(pid: int) -> int:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    shared = int(fields[2])
    return (int(fields[1]) - shared) * os.sysconf("SC_PAGE_SIZE")


def handles(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def object_store_bytes() -> float:
    key = "object_store_memory"
    return ray.cluster_resources()[key] - ray.available_resources()[key]


def test_memory_handles_and_actors_stay_flat():
    config = tiny_config("ARROW", epochs_per_task=1, cycles=CYCLES)
    config.training(world_model_updates=UPDATES // 2, actor_critic_updates=UPDATES // 2)
    config.env_runners(num_env_runners=1, num_cpus_per_env_runner=0)
    config.learners(num_learners=1, num_cpus_per_learner=0)
    config.evaluation(evaluation_interval=10, evaluation_duration=4)
    algorithm = config.build_algo()
    runner = next(iter(algorithm.env_runner_group._worker_manager.actors().values()))
    [learner] = algorithm.learner_group.foreach_learner(lambda _: os.getpid())
    pids = {
        "driver": os.getpid(),
        "learner": learner.get(),
        "replay": ray.get(algorithm.replay.pid.remote()),
        "runner": ray.get(runner.apply.remote(lambda _: os.getpid())),
    }
    memory, counts, store, switches = {name: [] for name in pids}, [], [], 0
    for _ in range(2 * CYCLES):
        switches += algorithm.train()["curriculum"]["switch"]
        for name, pid in pids.items():
            memory[name].append(resident_bytes(pid))
        counts.append([(handles(pid), threads(pid)) for pid in pids.values()])
        store.append(object_store_bytes())
    algorithm.stop()

    assert switches >= 100
    for name, series in memory.items():
        early = np.median(series[WARM_UP : WARM_UP + 10])
        late = np.median(series[-10:])
        assert late <= 1.02 * early, f"{name}: {early / 1e6:.1f} to {late / 1e6:.1f} MB"
    early, late = np.array(counts[WARM_UP]), np.array(counts[-1])
    assert (late <= early + 2).all(), f"handles and threads: {early} to {late}"
    early, late = np.median(store[WARM_UP : WARM_UP + 10]), np.median(store[-10:])
    assert late <= 1.02 * early + 2**20, f"object store: {early} to {late} bytes"
    alive = [a for a in actors().values() if a["State"] == "ALIVE"]
    assert not alive, f"left behind: {alive}"
