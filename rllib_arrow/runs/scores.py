"""`evaluations.csv`: what one row of it is, how it is written and how it is read.

Reading is strict, because every number of a report rests on it.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rllib_arrow.errors import UserError
from rllib_arrow.files import check_regular

EVALUATIONS_CSV = "evaluations.csv"
MAX_BYTES = 256 * 2**20  # a file of the paper's scale has a third of a megabyte
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
    try:
        check_regular(path, MAX_BYTES)
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file, strict=True)
            _check_header(path, next(reader, None))
            for cells in reader:
                if cells:
                    yield reader.line_num, _parse(path, reader.line_num, cells)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a readable CSV file ({error}).") from None


def _check_header(path: Path, header: list[str] | None) -> None:
    columns = ",".join(COLUMNS)
    if not header:
        raise UserError(f"{path}: the file is empty.")
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise UserError(
            f"{path}, line 1: column {missing[0]} is missing; the columns must be "
            f"{columns}."
        )
    if tuple(header) != COLUMNS:
        raise UserError(
            f"{path}, line 1: the columns must be {columns}, not {','.join(header)}."
        )


class _Cells:
    """The cells of one line, read with checks that name the place of a fault."""

    def __init__(self, path: Path, line: int, cells: list[str]) -> None:
        if len(cells) != len(COLUMNS):
            raise UserError(
                f"{path}, line {line}: {len(cells)} values, must be {len(COLUMNS)}; "
                "the file looks cut off."
            )
        self._place = f"{path}, line {line}"
        self.text = dict(zip(COLUMNS, cells, strict=True))

    def fault(self, column: str, allowed: str) -> UserError:
        value = self.text[column]
        return UserError(
            f"{self._place}, column {column}: {value!r} must be {allowed}."
        )

    def name(self, column: str) -> str:
        value = self.text[column]
        if not value.strip() or not value.isprintable():
            raise self.fault(column, "a name")
        return value

    def number(self, column: str) -> float:
        try:
            value = float(self.text[column])
        except ValueError:
            raise self.fault(column, "a number") from None
        if not math.isfinite(value):
            raise self.fault(column, "a finite number")
        return value

    def whole(self, column: str, at_least: int) -> int:
        text = self.text[column]
        value = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else -1
        if value < at_least:
            raise self.fault(column, f"a whole number of at least {at_least}")
        return value


def _parse(path: Path, line: int, values: list[str]) -> Score:
    cells = _Cells(path, line, values)
    if not _SETTING.fullmatch(cells.text["setting"]):
        raise cells.fault("setting", _SETTINGS)
    if not _SUITE.fullmatch(cells.text["suite"]):
        raise cells.fault("suite", "a name of letters, digits, - and _")
    epoch = cells.whole("epoch", 0)
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
        seed=cells.whole("seed", 0),
        epoch=epoch,
        frames=cells.whole("frames", 0),
        trained_task=cells.text["trained_task"],
        eval_task=cells.name("eval_task"),
        return_mean=cells.number("return_mean"),
        return_std=cells.number("return_std"),
        episodes=cells.whole("episodes", 1),
    )
