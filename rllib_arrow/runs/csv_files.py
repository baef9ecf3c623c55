"""CSV files of a run, read strictly: a fault is told with its line and its column."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path

from rllib_arrow.errors import UserError
from rllib_arrow.files import check_regular

MAX_BYTES = 256 * 2**20  # a file of the paper's scale has a third of a megabyte


def read_lines(path: Path, columns: tuple[str, ...]) -> Iterator[Cells]:
    """Yields the lines below the header, which must name these columns."""
    try:
        check_regular(path, MAX_BYTES)
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file, strict=True)
            _check_header(path, columns, next(reader, None))
            for cells in reader:
                if cells:
                    yield Cells(path, reader.line_num, columns, cells)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a readable CSV file ({error}).") from None


def _check_header(
    path: Path, columns: tuple[str, ...], header: list[str] | None
) -> None:
    if not header:
        raise UserError(f"{path}: the file is empty.")
    needed = f"the columns must be {','.join(columns)}"
    for column in columns:
        if column not in header:
            raise UserError(f"{path}, line 1: column {column} is missing; {needed}.")
    if tuple(header) != columns:
        raise UserError(f"{path}, line 1: {needed}, not {','.join(header)}.")


class Cells:
    """The cells of one line, read with checks that name the place of a fault."""

    def __init__(
        self, path: Path, line: int, columns: tuple[str, ...], cells: list[str]
    ) -> None:
        self.line, self._place = line, f"{path}, line {line}"
        if len(cells) != len(columns):
            raise UserError(
                f"{self._place}: {len(cells)} values, must be {len(columns)}; the file "
                "looks cut off."
            )
        self.text = dict(zip(columns, cells, strict=True))

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

    def number(self, column: str, or_nan: bool = False) -> float:
        try:
            value = float(self.text[column])
        except ValueError:
            raise self.fault(column, "a number") from None
        if not math.isfinite(value) and not (or_nan and math.isnan(value)):
            raise self.fault(column, "a finite number")
        return value

    def whole(self, column: str, at_least: int = 0) -> int:
        text = self.text[column]
        value = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else -1
        if value < at_least:
            raise self.fault(column, f"a whole number of at least {at_least}")
        return value
