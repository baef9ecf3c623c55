"""What a section of the report is made of, and what it is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from rllib_arrow.envs.titles import TITLES
from rllib_arrow.reports.tables import Table
from rllib_arrow.runs.results import RATIO, Comparison

_SETTINGS = {"default": "default order", "reversed": "reversed order"}


@dataclass
class Picture:
    """A figure yet to be drawn."""

    name: str
    caption: str
    make: Callable[[], Figure]


@dataclass
class Section:
    anchor: str
    title: str
    parts: list[Table | Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def suite_title(suite: str) -> str:
    return TITLES.get(suite, suite)


def setting_title(setting: str) -> str:
    return _SETTINGS.get(
        setting, setting.replace("_cycle", " cycles").replace("_", " ")
    )


def comparison_title(comparison: Comparison) -> str:
    suite, setting = suite_title(comparison.suite), setting_title(comparison.setting)
    return f"{suite}, {setting}{sweep_title(comparison.sweep)}"


def sweep_title(sweep: str) -> str:
    if sweep == RATIO:
        return ", buffer ratios"
    return f", by {' and '.join(sweep.split())}" if sweep else ""
