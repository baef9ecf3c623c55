"""`evaluations.csv`: what one row of it is, how it is written and how it is read.

Reading is strict, because every number of a report rests on it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rllib_arrow.runs.csv_files import Cells, read_lines

EVALUATIONS_CSV = "evaluations.csv"
_SUITE = re.compile(r"[A-Za-z0-9_-]+")  # names files, so it must not be a path
_SETTING = re.compile(r"default|reversed|single|[a-z0-9]+_cycle(_reversed)?")
_SETTINGS = "default, reversed, single, two_cycle, three_cycle and so on"


class Score(NamedTuple):
    """One evaluated task of one evaluation, in raw returns."""

    method: str
    suite: str
    setting: str
    seed: int
    epoch: int  # finished epochs; 0 is before any training
    frames: int
    trained_task: str  # of the epoch just finished; empty at epoch 0
    eval_task: str
    return_mean: float
    return_std: float
    episodes: int


COLUMNS = Score._fields


def to_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Returns the text of `evaluations.csv` with the given rows."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_scores(path: Path) -> Iterator[tuple[int, Score]]:
    """Yields the rows of a file, each with its line; a fault ends it with an error."""
    for cells in read_lines(path, COLUMNS):
        yield cells.line, _parse(cells)


def _parse(cells: Cells) -> Score:
    if not _SETTING.fullmatch(cells.text["setting"]):
        raise cells.fault("setting", _SETTINGS)
    if not _SUITE.fullmatch(cells.text["suite"]):
        raise cells.fault("suite", "a name of letters, digits, - and _")
    epoch = cells.whole("epoch")
    if bool(cells.text["trained_task"]) != (epoch > 0):
        raise cells.fault(
            "trained_task", "empty at epoch 0 and the name of a task after it"
        )
    if cells.number("return_std") < 0:
        raise cells.fault("return_std", "at least 0")
    return Score(
        method=cells.name("method"),
        suite=cells.text["suite"],
        setting=cells.text["setting"],
        seed=cells.whole("seed"),
        epoch=epoch,
        frames=cells.whole("frames"),
        trained_task=cells.text["trained_task"],
        eval_task=cells.name("eval_task"),
        return_mean=cells.number("return_mean"),
        return_std=cells.number("return_std"),
        episodes=cells.whole("episodes", 1),
    )
