"""The section "Inside": which parts forgot, plasticity, memory, and strips."""

from __future__ import annotations

from functools import partial

import pandas as pd

from rllib_arrow.reports.building_blocks import (
    Picture,
    Section,
    setting_title,
    suite_title,
)
from rllib_arrow.reports.inside_figures import (
    memory_figure,
    parts_figure,
    plasticity_figure,
    strips_figure,
)
from rllib_arrow.reports.inside_view import MAX_METHODS, InsideView
from rllib_arrow.reports.tables import EMPTY, Cell, Row, Table
from rllib_arrow.runs.forgotten import parts_forgot
from rllib_arrow.runs.load import Runs


def inside_sections(runs: Runs) -> list[Section]:
    """One section for each suite and setting of which a run was looked into."""
    places = runs.inside[["suite", "setting"]].drop_duplicates()
    return [
        _section(InsideView(runs, suite, setting))
        for suite, setting in places.itertuples(index=False)
        if setting != "single"
    ]


def _section(view: InsideView) -> Section:
    place = f"{suite_title(view.suite)}, {setting_title(view.setting)}"
    name = f"{view.suite}_{view.setting}"
    section = Section(f"inside_{name}", f"Inside: {place}")
    parts = section.parts
    if len(view.forgotten):
        parts += [
            Picture(
                f"inside_parts_{name}",
                "Parts x tasks x time. How much of what training gave to a part is "
                "gone, task by task: 0 as at the end of the task's own training, 1 as "
                "if untrained. Every part is fed the old inputs, so it answers for "
                "itself alone; the agent is all of them together, from frames to "
                "action. Medians and quartiles over seeds.",
                partial(parts_figure, view),
            ),
            parts_table(view.inside, view.setting, view.methods),
        ]
    if (view.inside.task == "").any():
        parts.append(
            Picture(
                f"inside_plasticity_{name}",
                "Plasticity of each network on recent rows; medians over seeds.",
                partial(plasticity_figure, view),
            )
        )
    if len(view.memory):
        parts.append(
            Picture(
                f"inside_memory_{name}",
                "What the buffers hold by task, how old it is, and the share of "
                "minibatches from each; means over seeds.",
                partial(memory_figure, view),
            )
        )
    if view.strips:
        parts.append(
            Picture(
                f"inside_strips_{name}",
                "What the world model makes of each task when its training ended "
                "(left) and at the end of the run (right), on the same held-out rows: "
                "real frames, reconstruction, and a dream that saw the frames with a "
                "white line below them. One seed.",
                partial(strips_figure, view),
            )
        )
    if len(view.all_methods) > MAX_METHODS:
        left_out = ", ".join(view.all_methods[MAX_METHODS:])
        section.notes.append(f"Not drawn, for lack of room: {left_out}.")
    return section


def parts_table(inside: pd.DataFrame, setting: str, methods: list[str]) -> Table:
    """What each part forgot by the end, by method, with intervals over seeds.

    The last columns are the first method's minus each other's, by seed.
    """
    found = {(f.part, f.method): f for f in parts_forgot(inside, setting, methods)}
    first, *others = methods
    columns = ["Part", *methods, *(f"{first} minus {other}" for other in others)]
    table = Table("Forgotten by the end, by part", columns)
    for part in dict.fromkeys(part for part, _ in found):
        cells = [Cell(part.replace("_", " "))]
        for method in methods:
            one = found.get((part, method))
            cells.append(Cell(_interval(one.mean) if one else EMPTY))
        for other in others:
            one = found.get((part, other))
            paired = one.minus.get(first) if one else None
            cells.append(Cell(_interval(paired.mean, "+") if paired else EMPTY))
        table.rows.append(Row(tuple(cells)))
    seeds = {
        m: len({s for (_, k), f in found.items() if k == m for s in f.seeds})
        for m in methods
    }
    counted = ", ".join(f"{method} {count}" for method, count in seeds.items())
    table.notes += [
        "Mean over the tasks that were not trained last and over seeds, with 95 % "
        "bootstrap intervals over seeds (the range of fewer than five); 0 is as it "
        "was, 1 as if untrained.",
        f"Seeds: {counted}.",
    ]
    return table


def _interval(interval: tuple[float, float, float], sign: str = "") -> str:
    value, low, high = (f"{number:{sign}.2f}" for number in interval)
    return f"{value} [{low}, {high}]"
