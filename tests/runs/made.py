"""Small run directories with given scores, for the tests of runs and reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rllib_arrow.curriculum.exposure import plan_exposures

HEADER = (
    "method,suite,setting,seed,epoch,frames,trained_task,eval_task,"
    "return_mean,return_std,episodes"
)

# One epoch per task. Singles: A from 10 to 30, B from 0 to 4.
SCORES = {"A": [10, 30, 20], "B": [0, 1, 3]}


def csv_lines(
    scores: Mapping[str, Sequence[float]],
    lengths: Sequence[int],
    cycles: int = 1,
    method: str = "ARROW",
    suite: str = "toy",
    setting: str = "default",
    seed: int = 1,
    epochs: Sequence[int] | None = None,
) -> list[str]:
    """The rows of a run that has one score per task and evaluation."""
    tasks = list(scores)
    exposures = plan_exposures(tasks, lengths, cycles)
    count = len(scores[tasks[0]])
    lines = []
    for row, epoch in enumerate(epochs or range(count)):
        on = [e.task for e in exposures if e.start < epoch <= e.end]
        for task in tasks:
            head = f"{method},{suite},{setting},{seed},{epoch},{100 * epoch}"
            trained = on[0] if on else ""
            lines.append(f"{head},{trained},{task},{scores[task][row]},0.5,16")
    return lines


def write_csv(path: Path, lines: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


def write_run(
    directory: Path,
    scores: Mapping[str, Sequence[float]],
    lengths: Sequence[int],
    cycles: int = 1,
    **about,
) -> Path:
    """A run directory with its evaluations and its curriculum."""
    write_csv(
        directory / "evaluations.csv", csv_lines(scores, lengths, cycles, **about)
    )
    plan = {
        "suite": about.get("suite", "toy"),
        "setting": about.get("setting", "default"),
        "tasks": list(scores),
        "epochs_per_task": list(lengths),
        "cycles": cycles,
        "frames_per_epoch": 100,
    }
    (directory / "curriculum.json").write_text(json.dumps(plan))
    return directory


def write_singles(root, method="ARROW", a=(10, 30), b=(0, 4), seed=1, **about):
    for task, scores in (("A", a), ("B", b)):
        where = root / f"{method}_{task}_{seed}"
        about_single = {"method": method, "setting": "single", "seed": seed, **about}
        write_run(where, {task: list(scores)}, [len(scores) - 1], **about_single)
    return root
