"""Small run directories with given scores, for the report's tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rllib_arrow.metrics.curve import plan_exposures

HEADER = (
    "method,suite,setting,seed,epoch,frames,trained_task,eval_task,"
    "return_mean,return_std,episodes"
)


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
    exposures = plan_exposures(lengths, cycles)
    count = len(scores[tasks[0]])
    lines = []
    for row, epoch in enumerate(epochs or range(count)):
        on = [tasks[e.task] for e in exposures if e.start < epoch <= e.end]
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
