"""Runs that are hard to show: odd names, odd scores, many tasks, many methods."""

from __future__ import annotations

import csv
import json
import resource
import time
import warnings

import pytest

from rllib_arrow.reports import forgetting_table, write_report
from rllib_arrow.reports.figures import MAX_TASKS, curves_figure
from rllib_arrow.reports.style import draw
from rllib_arrow.reports.tables import escape
from rllib_arrow.runs.load import load_runs
from tests.runs.made import SCORES, csv_lines, write_csv, write_run

FLAT = {"A": [1, 1, 1], "B": [2, 2, 2]}


def test_names_are_no_markup_in_markdown_and_no_formula_in_a_spreadsheet(tmp_path):
    tasks = {"[x](http://y)": [0, 1, 1], "`|a|`": [0, 0, 2], "_b_": [0, 0, 1]}
    lines = csv_lines(tasks, [1, 1, 1], method="=1+1")
    report = write_report(load_runs(write_csv(tmp_path / "x.csv", lines)), tmp_path)
    text = (report.parent / "tables.md").read_text()
    assert "[x](http" not in text and "[x\\](http://y)" in text
    assert "\\`\\|a\\|\\`" in text and "\\_b\\_" in text
    for name in ("metrics.csv", "metrics_by_seed.csv"):
        with (report.parent / name).open(newline="") as file:
            assert {row["method"] for row in csv.DictReader(file)} == {"'=1+1"}


def test_escaping_leaves_numbers_and_words_alone():
    plain = "0.442 [0.277 - 0.527] space_invaders P(A"
    assert escape(plain) == plain


@pytest.mark.parametrize("task", ["$x$", r"$\\frac", "a $1 b $2", "_hidden"])
def test_a_figure_shows_a_name_as_it_is(tmp_path, task):
    run = write_run(tmp_path / "run", {task: [0, 1, 1], "B": [0, 0, 2]}, [1, 1])
    (comparison,) = load_runs(run).results.comparisons
    made = {}

    def figure():
        made["figure"] = curves_figure(comparison)
        return made["figure"]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw(figure).startswith(b"\x89PNG")
    texts = made["figure"].legends[0].get_texts()
    assert texts[0].get_text().strip() == task
    assert not texts[0].get_parse_math()


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        (FLAT, "no score above random is known (every evaluation has 1)"),
        ({"A": [0, -1, -2], "B": [0, -1, -1]}, "no score above random is known."),
        ({"A": [0, 1e300, 0], "B": [0, 0, 1.5e308]}, "too far apart to be compared"),
    ],
)
def test_scores_that_cannot_be_normalised_are_drawn_raw_and_told(tmp_path, scores, why):
    runs = load_runs(write_run(tmp_path / "run", scores, [1, 1]))
    page = write_report(runs, tmp_path / "out")
    text = page.read_text()
    assert why in text and "raw returns only" in text
    assert "There are no normalised numbers" in text
    assert [p.name for p in (tmp_path / "out" / "figures").iterdir()] == [
        "curves_toy_default.png"
    ]
    assert "Before any training" in (tmp_path / "out" / "tables.md").read_text()


def test_the_terminal_shows_two_tasks_that_were_not_learned(tmp_path):
    text = forgetting_table(load_runs(write_run(tmp_path / "run", FLAT, [1, 1])))
    assert "No run with more than one task" not in text
    rows = [line.split() for line in text.splitlines()]
    assert ["A", "ARROW", "1.00", "1.00", "1.00", "0.00"] in rows
    assert "no score above random is known" in text


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_a_report_on_five_hundred_tasks_is_bounded(tmp_path):
    tasks = {f"task {i}": [0, 1 + i, 2 + i] * 4 for i in range(500)}
    run = write_run(tmp_path / "run", tasks, [1] * 500)
    start, memory = time.process_time(), peak_mb()
    runs = load_runs(run)
    page = write_report(runs, tmp_path / "out")
    assert time.process_time() - start < 30
    assert peak_mb() - memory < 300
    assert len(forgetting_table(runs).splitlines()) < 2 * MAX_TASKS
    assert page.stat().st_size < 5e6
    assert f"the first {MAX_TASKS} of 500 tasks" in page.read_text()


def test_twelve_methods_fit_into_every_figure(tmp_path):
    names = ["ARROW", "DV3", "TES-SAC", "AR100", *(f"Variant {i}" for i in range(7))]
    for seed in (1, 2):
        for method in (*names, "DV3 replay_capacity_chunks=100000"):
            where = tmp_path / f"{method}{seed}"
            write_run(where, SCORES, [1, 1], method=method, seed=seed)
    runs = load_runs(tmp_path)
    (comparison,) = runs.results.comparisons
    assert len(comparison.methods) == 12
    assert list(comparison.methods)[:3] == [
        "ARROW",
        "DV3",
        "DV3 replay_capacity_chunks=100000",
    ]
    assert len(comparison.improvement) == len(comparison.differences) == 11
    page = write_report(runs, tmp_path / "out")
    assert (page.parent / "figures" / "headline_toy_default.png").is_file()


def test_a_setting_of_which_one_value_was_run_is_a_control(tmp_path):
    write_run(tmp_path / "a", SCORES, [1, 1])
    write_run(tmp_path / "b", SCORES, [1, 1], method="DV3 memory=64")
    (both,) = load_runs(tmp_path).results.comparisons
    assert list(both.methods) == ["ARROW", "DV3 memory=64"]
    write_run(tmp_path / "c", SCORES, [1, 1], method="DV3 memory=128")
    plain, sweep = load_runs(tmp_path).results.comparisons
    assert list(plain.methods) == ["ARROW"]
    assert list(sweep.methods) == ["DV3 memory=64", "DV3 memory=128"]


def test_tasks_that_alternate_have_a_report(tmp_path):
    scores = {"A": [0, *range(1, 21)], "B": [0, *range(2, 22)]}
    run = write_run(
        tmp_path / "run", scores, [1, 1], cycles=10, setting="ten_cycle", method="ARROW"
    )
    page = write_report(load_runs(run), tmp_path / "out")
    tables = (page.parent / "tables.md").read_text()
    assert "| Method | Max-F ↓ | Recovery ↑ | ACC ↑ | min-ACC ↑ | WC-ACC ↑ |" in tables
    assert "C1-F" not in tables


def test_a_run_that_a_rule_switched_is_measured_by_what_was_trained(tmp_path):
    scores = {"A": [0, 4, 2, 1], "B": [0, 0, 3, 4]}
    run = write_run(tmp_path / "run", scores, [1, 2])
    plan = json.loads((run / "curriculum.json").read_text())
    plan["epochs_per_task"] = 3
    plan["exposures"] = [
        {"task": "A", "cycle": 1, "start": 0, "end": 1},
        {"task": "B", "cycle": 1, "start": 1, "end": 3},
    ]
    (run / "curriculum.json").write_text(json.dumps(plan))
    metrics = load_runs(run).metrics.set_index("metric").value
    assert metrics["retention"] == pytest.approx(1 / 4)
