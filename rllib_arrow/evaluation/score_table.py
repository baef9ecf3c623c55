"""The two small files every reader of a run relies on, as text."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

EVALUATIONS_CSV = "evaluations.csv"
CURRICULUM_JSON = "curriculum.json"
COLUMNS = (
    "method",
    "suite",
    "setting",
    "seed",
    "epoch",
    "frames",
    "trained_task",
    "eval_task",
    "return_mean",
    "return_std",
    "episodes",
)


def to_csv(rows: list[dict[str, Any]]) -> str:
    """Returns the rows of `evaluations.csv` under their header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def curriculum_text(content: dict[str, Any]) -> str:
    """Returns the content of `curriculum.json`."""
    return json.dumps(content, indent=2) + "\n"


def write_atomically(path: Path, text: str) -> None:
    """Writes text under a temporary name and renames it: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
