"""What diagnostics would have written into a run's directory, made up."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from rllib_arrow.runs.forgotten import MAIN_MEASURE
from rllib_arrow.runs.inside import (
    AT_ITS_END,
    AT_THE_END,
    INSIDE_CSV,
    MEMORY_CSV,
    Inside,
    Memory,
    strip_file,
    to_csv,
)

AS_IT_WAS = {"cka": 1.0, "kl": 0.0, "agreement": 1.0, "drift": 0.0, "loss": 0.1}
UNTRAINED = {"cka": 0.2, "kl": 2.0, "agreement": 0.2, "drift": 3.0, "loss": 0.7}
PLASTICITY = ("dormant", "effective_rank", "weight_norm", "distance", "gradient_norm")


def write_inside(
    directory: Path,
    tasks: Sequence[str],
    epochs_per_task: int,
    cycles: int,
    interval: int,
    seed: int = 1,
    pace: float = 0.01,
) -> None:
    """Every part forgets a little at each look, and those later in the list more."""
    rng = np.random.default_rng(seed)
    inside, memory, ended = [], [], {}
    total = epochs_per_task * len(tasks) * cycles
    for epoch in range(interval, total + 1, interval):
        exposure, rest = divmod(epoch, epochs_per_task)
        if rest == 0:
            cycle, place = divmod(exposure - 1, len(tasks))
            ended[tasks[place]] = (cycle + 1, epoch)
            inside += [
                Inside(0, tasks[place], cycle + 1, part, measure, UNTRAINED[measure])
                for part, measure in MAIN_MEASURE.items()
            ]
        for task, (cycle, end) in ended.items():
            for i, (part, measure) in enumerate(MAIN_MEASURE.items()):
                lost = min(1.1, pace * (epoch - end) * (i + rng.random()))
                value = AS_IT_WAS[measure] * (1 - lost) + UNTRAINED[measure] * lost
                inside.append(Inside(epoch, task, cycle, part, measure, value))
        for part in MAIN_MEASURE:
            for measure in PLASTICITY:
                inside.append(Inside(epoch, "", 0, part, measure, rng.random()))
        memory += _memory(epoch, tasks[(exposure - (rest == 0)) % len(tasks)])
    directory.joinpath(INSIDE_CSV).write_text(to_csv(Inside, inside))
    directory.joinpath(MEMORY_CSV).write_text(to_csv(Memory, memory))
    (directory / "strips").mkdir()
    for task in tasks:
        for when in (AT_ITS_END, AT_THE_END):
            path = directory / strip_file(tasks, task, when)
            path.write_bytes(_picture(rng))


def _memory(epoch: int, task: str) -> list[Memory]:
    return [
        Memory(epoch, "fifo", task, "chunks", 8),
        Memory(epoch, "fifo", "", "age_median", 4),
        Memory(epoch, "fifo", "", "minibatches", 0.5),
        Memory(epoch, "ltdm", task, "chunks", 8),
        Memory(epoch, "ltdm", "", "age_median", 2 * epoch),
        Memory(epoch, "ltdm", "", "minibatches", 0.5),
    ]


def _picture(rng: np.random.Generator) -> bytes:
    file = io.BytesIO()
    pixels = rng.integers(0, 256, (196, 768, 3), np.uint8)
    Image.fromarray(pixels).save(file, format="PNG")
    return file.getvalue()
