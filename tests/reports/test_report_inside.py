"""The section "Inside": there where runs were looked into, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.report import write_run
from rllib_arrow.reports.inside_section import inside_sections
from rllib_arrow.reports.inside_view import over_seeds
from rllib_arrow.runs.load import load_runs
from tests.reports.made_inside import write_inside

TASKS = ["breakout", "space_invaders"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("inside")
    for method, pace in {"ARROW": 0.002, "DV3": 0.02, "TES-SAC": None}.items():
        for seed in (1, 2):
            place = root / f"{method}{seed}"
            write_run(place, method, "minatar", "default", seed, TASKS, 10, interval=5)
            if pace:
                write_inside(place, TASKS, 10, 1, 5, seed, pace)
    return root


def test_runs_that_were_not_looked_into_have_no_such_section(root):
    assert inside_sections(load_runs(root / "TES-SAC1")) == []


def test_the_table_says_what_each_part_forgot_and_how_sure_that_is(root):
    [section] = inside_sections(load_runs(root))
    [table] = [part for part in section.parts if hasattr(part, "rows")]
    assert table.columns == ["Part", "ARROW", "DV3", "ARROW minus DV3"]
    rows = {row.cells[0].text: [c.text for c in row.cells[1:]] for row in table.rows}
    # The agent, last in the list, loses 0.02 x 10 epochs x (9 to 10) with DV3.
    arrow, dv3, difference = rows["agent"]
    assert arrow.startswith("0.1") or arrow.startswith("0.2")
    assert dv3 == "1.10 [1.10, 1.10]"
    assert difference.startswith("-0.9")
    assert "Seeds: ARROW 2, DV3 2." in table.notes


def test_a_cycle_begins_anew_and_seeds_are_summed_up_look_by_look(root):
    rows = load_runs(root).inside
    chosen = (rows.part == "encoder") & (rows.measure == "dormant")
    series = over_seeds(rows[chosen & (rows.method == "DV3")], "value")
    assert series.epochs.tolist() == [5, 10, 15, 20]
    assert (series.q25 <= series.median).all() and (series.median <= series.q75).all()


def test_methods_side_by_side_share_a_scale_that_shows_every_line(root):
    runs = load_runs(root)
    rows = runs.inside
    norms = rows.measure == "gradient_norm"
    of_one = norms & (rows.part == rows.part[norms].iloc[0])
    rows.loc[of_one, "value"] *= 1000  # as those of networks differ
    [section] = inside_sections(runs)
    names = {part.name: part for part in section.parts if hasattr(part, "make")}
    figure = names["inside_plasticity_minatar_default"].make()
    panels: dict[float, list] = {}
    for ax in figure.axes:
        panels.setdefault(round(ax.get_position().y0, 3), []).append(ax)
    assert any(ax.get_yscale() == "log" for ax in figure.axes)
    for side_by_side in panels.values():
        [(low, high)] = {ax.get_ylim() for ax in side_by_side}
        lines = [line for ax in side_by_side for line in ax.get_lines()]
        drawn = np.concatenate([y for y in map(ydata, lines) if len(y) > 2])
        assert low <= drawn.min() and drawn.max() <= high
        if side_by_side[0].get_yscale() == "log":
            assert low > drawn.min() / 10  # most of the panel is not empty


def ydata(line) -> np.ndarray:
    return np.asarray(line.get_ydata(), float)
