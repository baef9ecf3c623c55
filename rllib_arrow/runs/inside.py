"""`inside.csv` and `memory.csv`: what diagnostics found in a run, by evaluation.

A row of either is one number. Both are written whole, and read strictly.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rllib_arrow.runs.csv_files import Cells, read_lines

INSIDE_CSV = "inside.csv"
MEMORY_CSV = "memory.csv"
BUFFERS = ("fifo", "ltdm")
AT_ITS_END, AT_THE_END = "at_its_end", "at_the_end"  # of the task, of the run


class Inside(NamedTuple):
    """A measure of one part of the networks.

    With a task, it is on the rows that were kept at the end of the task's training of
    that cycle; at epoch 0 then stands what networks without any training get. Without
    a task (and of cycle 0), it is a measure of plasticity, on recent rows.
    """

    epoch: int
    task: str
    cycle: int
    part: str
    measure: str
    value: float


class Memory(NamedTuple):
    """A figure of one buffer after an epoch; those by task name it."""

    epoch: int
    buffer: str
    task: str
    measure: str
    value: float


Row = Inside | Memory


def probe_file(tasks: Sequence[str], task: str) -> str:
    """Returns where in a run's directory the probe set of a task lies."""
    return f"probes/{_file_name(tasks, task)}.npz"


def strip_file(tasks: Sequence[str], task: str, when: str) -> str:
    """Returns where in a run's directory a task's strip lies, drawn at one end."""
    return f"strips/{_file_name(tasks, task)}_{when}.png"


def _file_name(tasks: Sequence[str], task: str) -> str:
    """Names may have any letters; the number keeps them apart."""
    return f"{tasks.index(task) + 1}_{re.sub(r'[^A-Za-z0-9]+', '_', task)[:40]}"


def to_csv(kind: type[Row], rows: Iterable[Row]) -> str:
    """Returns the text of a file, sorted by epoch; six digits of each value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(kind._fields)
    for *names, value in sorted(rows, key=lambda row: row.epoch):
        writer.writerow([*names, f"{value:.6g}"])
    return text.getvalue()


def read_findings(kind: type[Row], path: Path) -> list[Any]:
    """Returns the rows of a file of that kind; none if there is no such file."""
    if not path.exists():
        return []
    return [_parse(kind, cells) for cells in read_lines(path, kind._fields)]


def _parse(kind: type[Row], cells: Cells) -> Row:
    numbers = {c: cells.whole(c) for c in ("epoch", "cycle") if c in kind._fields}
    value = cells.number("value", or_nan=True)
    return kind(**cells.text | numbers | {"value": value})
