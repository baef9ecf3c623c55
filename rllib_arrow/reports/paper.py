"""The paper's own numbers, to stand beside ours where suite and setting match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rllib_arrow.metrics.statistics import Summary
from rllib_arrow.reports import paper_numbers as printed
from rllib_arrow.runs.results import RATIOS

SEEDS = 5
TASKS = 6
FRAMES = 8_847_360  # of a continual run
BASELINES = ("ARROW", "DV3", "TES-SAC")


class Efficiency(NamedTuple):
    """One method's line in a sample-efficiency table; `frames.seeds` runs got there."""

    peak: float
    frames: Summary


class EfficiencyBlock(NamedTuple):
    """One setting, or one task, of a sample-efficiency table."""

    threshold: float
    methods: dict[str, Efficiency]


def _blocks(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Splits a text into heads and the indented rows under each."""
    head: list[str] = []
    rows: list[list[str]] = []
    for line in text.strip().splitlines():
        if line.startswith(" "):
            rows.append(line.split())
            continue
        if head:
            yield head, rows
        head, rows = line.split(maxsplit=2), []
    yield head, rows


def _read_metrics() -> dict[tuple[str, str], dict[str, dict[str, Summary]]]:
    tables: dict[tuple[str, str], dict[str, dict[str, Summary]]] = {}
    for (suite, setting, names), rows in _blocks(printed.METRICS):
        for method, *numbers in rows:
            values = np.array(numbers, dtype=float).reshape(-1, 3).tolist()
            methods = tables.setdefault((suite, setting), {})
            for name, triple in zip(names.split(), values, strict=True):
                methods.setdefault(method, {})[name] = Summary(*triple, SEEDS)
    for methods in tables.values():
        methods["AR50"] = methods["ARROW"]
    return tables


def _efficiency_block(threshold: str, rows: list[list[str]]) -> EfficiencyBlock:
    methods = {}
    for method, peak, *frames, reached in rows:
        triple = [np.nan if cell == "-" else float(cell) for cell in frames]
        count = int(reached.split("/")[0])
        methods[method] = Efficiency(float(peak), Summary(*triple, count))
    return EfficiencyBlock(float(threshold), methods)


def _read_efficiency() -> dict[tuple[str, str, bool], EfficiencyBlock]:
    """Keyed by suite, setting, and whether it is the buffer-ratio ablation."""
    return {
        (suite, setting, rows[0][0] in RATIOS): _efficiency_block(threshold, rows)
        for (suite, setting, threshold), rows in _blocks(printed.CONTINUAL_EFFICIENCY)
    }


def _read_single_efficiency() -> dict[tuple[str, str], EfficiencyBlock]:
    """Keyed by suite and the task's printed name."""
    return {
        (suite, task): _efficiency_block(threshold, rows)
        for (suite, threshold, task), rows in _blocks(printed.SINGLE_TASK_EFFICIENCY)
    }


METRICS = _read_metrics()
CONTINUAL_EFFICIENCY = _read_efficiency()
SINGLE_TASK_EFFICIENCY = _read_single_efficiency()
