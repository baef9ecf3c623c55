"""How long a report takes over as many runs as the paper has, and over seven times it.

    python -m benchmarks.report

The runs are synthetic: made up from a formula with noise, to have files of the right
size and shape. They say nothing about any method.
"""

from __future__ import annotations

import csv
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rllib_arrow.curriculum.exposure import plan_exposures
from rllib_arrow.envs.suites import get_suite
from rllib_arrow.reports import write_report
from rllib_arrow.runs.load import load_runs
from rllib_arrow.runs.scores import COLUMNS
from rllib_arrow.seeding import derive_rng

FRAMES_PER_EPOCH = 16_384
SEEDS = (123456789, 1337, 31337, 42, 987654321)
MANY_SEEDS = (*SEEDS, *range(32))
LIMITS = {SEEDS: 60.0, MANY_SEEDS: 300.0}  # seconds
# How fast a method learns a task, and how fast it loses one it does not train.
SPEEDS = {
    "ARROW": (0.030, 0.002),
    "DV3": (0.040, 0.020),
    "TES-SAC": (0.006, 0.004),
    "AR25": (0.035, 0.006),
    "AR75": (0.024, 0.001),
}


def write_run(
    directory: Path,
    method: str,
    suite: str,
    setting: str,
    seed: int,
    tasks: Sequence[str],
    epochs_per_task: int = 90,
    cycles: int = 1,
    interval: int = 10,
    stop: int | None = None,
) -> Path:
    """Writes one synthetic run directory; `stop` leaves it unfinished."""
    directory.mkdir(parents=True)
    exposures = plan_exposures(tasks, [epochs_per_task] * len(tasks), cycles)
    rng = derive_rng(seed, method, suite, setting, *tasks)
    last = exposures[-1].end if stop is None else stop
    learn, lose = SPEEDS[method]
    skill = np.zeros(len(tasks))
    rows = []
    for epoch in range(last + 1):
        trained = next((e.task for e in exposures if e.start < epoch <= e.end), "")
        if trained:
            current = tasks.index(trained)
            skill *= 1 - lose
            gain = learn * rng.uniform(0.6, 1.4)
            skill[current] += gain * (1.1 - skill[current]) + lose * skill[current]
        if epoch % interval == 0 or epoch == last:
            for task, level in zip(tasks, skill, strict=True):
                score = 2 + 30 * max(level + rng.normal(0, 0.03), -0.05)
                head = [method, suite, setting, seed, epoch, epoch * FRAMES_PER_EPOCH]
                rows.append([*head, trained, task, f"{score:.4f}", "1.5000", 16])
    with (directory / "evaluations.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    plan = {
        "suite": suite,
        "setting": setting,
        "tasks": list(tasks),
        "epochs_per_task": [epochs_per_task] * len(tasks),
        "cycles": cycles,
        "frames_per_epoch": FRAMES_PER_EPOCH,
    }
    (directory / "curriculum.json").write_text(json.dumps(plan))
    return directory


def write_study(
    root: Path,
    suites: Sequence[str] = ("atari", "coinrun"),
    methods: Sequence[str] = ("ARROW", "DV3", "TES-SAC"),
    seeds: Sequence[int] = SEEDS,
) -> tuple[Path, Path]:
    """Writes the paper's runs: continual ones and single-task ones, in two trees."""
    continual, single = root / "continual", root / "single"
    for suite in suites:
        tasks = get_suite(suite).tasks
        for method in methods:
            for seed in seeds:
                where = (method, suite)
                for setting, order, epochs, cycles in (
                    ("default", tasks, 90, 1),
                    ("reversed", tasks[::-1], 90, 1),
                    ("two_cycle", tasks, 45, 2),
                ):
                    path = continual / suite / setting / f"{method}_{seed}"
                    write_run(path, *where, setting, seed, order, epochs, cycles)
                for task in tasks:
                    path = single / suite / task / f"{method}_{seed}"
                    write_run(path, *where, "single", seed, [task])
    return continual, single


def measure(seeds: Sequence[int], limit: float) -> None:
    """Reports on runs of these seeds, and prints how long that took."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        continual, single = write_study(root, seeds=seeds)
        runs = len(list(root.rglob("evaluations.csv")))
        start = time.perf_counter()
        write_report(load_runs(continual, baselines=single), root / "report")
        seconds = time.perf_counter() - start
    figure = {
        "name": f"report_over_{runs}_runs",
        "ours": round(seconds, 2),
        "peer": limit,
        "peer_name": "time limit",
        "ratio": round(limit / seconds, 2),
        "unit": "s",
    }
    print(json.dumps(figure), flush=True)


def main() -> None:
    for seeds, limit in LIMITS.items():
        measure(seeds, limit)


if __name__ == "__main__":
    main()
