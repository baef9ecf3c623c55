"""Reads the files of one run as they stand; strict, because numbers rest on them."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

COLUMNS = (
    "method,suite,setting,seed,epoch,frames,"
    "trained_task,eval_task,return_mean,return_std,episodes"
).split(",")
_SUITE = re.compile(r"[A-Za-z0-9_-]+")  # names files, so it must not be a path
_SETTING = re.compile(r"default|reversed|single|[a-z0-9]+_cycle(_reversed)?")
_SETTINGS = "default, reversed, single, two_cycle, three_cycle and so on"


class ReportError(ValueError):
    """Something in the given runs that a user can put right, told in one line."""


class Row(NamedTuple):
    """One evaluated task of one evaluation, and the line it stands in."""

    line: int
    method: str
    suite: str
    setting: str
    seed: int
    epoch: int
    frames: int
    trained_task: str
    eval_task: str
    return_mean: float


def read_rows(path: Path) -> Iterator[Row]:
    """Yields the rows of an evaluation file; the first fault ends it with an error."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file, strict=True)
            _check_header(path, next(reader, None))
            for cells in reader:
                if cells:
                    yield _parse(path, reader.line_num, cells)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ReportError(f"{path}: not a readable CSV file ({error}).") from None


def _check_header(path: Path, header: list[str] | None) -> None:
    if not header:
        raise ReportError(f"{path}: the file is empty.")
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise ReportError(
            f"{path}, line 1: column {missing[0]} is missing; the columns must be "
            f"{','.join(COLUMNS)}."
        )
    if header != COLUMNS:
        raise ReportError(
            f"{path}, line 1: the columns must be {','.join(COLUMNS)}, "
            f"not {','.join(header)}."
        )


class _Cells:
    """The cells of one line, read with checks that name the place of a fault."""

    def __init__(self, path: Path, line: int, cells: list[str]) -> None:
        if len(cells) != len(COLUMNS):
            raise ReportError(
                f"{path}, line {line}: {len(cells)} values, must be {len(COLUMNS)}; "
                "the file looks cut off."
            )
        self._place = f"{path}, line {line}"
        self._cells = dict(zip(COLUMNS, cells, strict=True))

    def fault(self, column: str, allowed: str) -> ReportError:
        value = self._cells[column]
        return ReportError(
            f"{self._place}, column {column}: {value!r} must be {allowed}."
        )

    def text(self, column: str) -> str:
        return self._cells[column]

    def name(self, column: str) -> str:
        value = self._cells[column]
        if not value.strip() or not value.isprintable():
            raise self.fault(column, "a name")
        return value

    def number(self, column: str) -> float:
        try:
            value = float(self._cells[column])
        except ValueError:
            raise self.fault(column, "a number") from None
        if not math.isfinite(value):
            raise self.fault(column, "a finite number")
        return value

    def whole(self, column: str, at_least: int) -> int:
        if not re.fullmatch(r"\d{1,18}", self._cells[column]):
            raise self.fault(column, f"a whole number of at least {at_least}")
        value = int(self._cells[column])
        if value < at_least:
            raise self.fault(column, f"a whole number of at least {at_least}")
        return value


def _parse(path: Path, line: int, values: list[str]) -> Row:
    cells = _Cells(path, line, values)
    if not _SETTING.fullmatch(cells.text("setting")):
        raise cells.fault("setting", _SETTINGS)
    if not _SUITE.fullmatch(cells.text("suite")):
        raise cells.fault("suite", "a name of letters, digits, - and _")
    epoch = cells.whole("epoch", 0)
    if bool(cells.text("trained_task")) != (epoch > 0):
        raise cells.fault(
            "trained_task", "empty at epoch 0 and the name of a task after it"
        )
    if cells.number("return_std") < 0:
        raise cells.fault("return_std", "at least 0")
    cells.whole("episodes", 1)
    return Row(
        line,
        cells.name("method"),
        cells.text("suite"),
        cells.text("setting"),
        cells.whole("seed", 0),
        epoch,
        cells.whole("frames", 0),
        cells.text("trained_task"),
        cells.name("eval_task"),
        cells.number("return_mean"),
    )


class Plan(NamedTuple):
    """What curriculum.json says about the order of training."""

    tasks: tuple[str, ...]
    epochs_per_task: tuple[int, ...]
    cycles: int


def read_plan(path: Path) -> Plan | None:
    """Reads curriculum.json, checked; None if there is no such file."""
    if not path.is_file():
        return None
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ReportError(f"{path}: not readable JSON ({error}).") from None
    if not isinstance(plan, dict):
        raise ReportError(f"{path}: must be a JSON object, not {plan!r}.")

    def check(key: str, good: bool, allowed: str) -> None:
        if not good:
            raise ReportError(f"{path}: {key} ({plan.get(key)!r}) must be {allowed}.")

    tasks, lengths = plan.get("tasks"), plan.get("epochs_per_task")
    check("tasks", _distinct_names(tasks), "a list of distinct task names")
    if _is_count(lengths):
        lengths = [lengths] * len(tasks)
    check(
        "epochs_per_task",
        isinstance(lengths, list)
        and len(lengths) == len(tasks)
        and all(map(_is_count, lengths)),
        f"a whole number above 0, or a list of {len(tasks)}, one per task",
    )
    check("cycles", _is_count(plan.get("cycles")), "a whole number above 0")
    return Plan(tuple(tasks), tuple(lengths), plan["cycles"])


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _distinct_names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(isinstance(name, str) and name for name in value)
        and len(set(value)) == len(value)
    )
