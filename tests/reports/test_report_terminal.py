"""The short answer for the terminal."""

from __future__ import annotations

from rllib_arrow.reports import forgetting_table
from rllib_arrow.runs.load import load_runs
from tests.runs.made import SCORES, write_run, write_singles


def test_the_terminal_table_shows_raw_returns_and_what_was_forgotten(tmp_path):
    run = write_run(tmp_path / "run", SCORES, [1, 1])
    single = write_singles(tmp_path / "single")
    text = forgetting_table(load_runs(run, baselines=single))
    rows = [line.split() for line in text.splitlines()]
    assert ["A", "ARROW", "10.00", "30.00", "20.00", "10.00"] in rows
    assert ["B", "ARROW", "0.00", "3.00", "3.00", "0.00"] in rows
    assert any(row[:2] == ["ARROW", "0.250"] for row in rows)
    assert text.isascii()


def test_the_terminal_table_of_single_task_runs_says_so(tmp_path):
    text = forgetting_table(load_runs(write_singles(tmp_path)))
    assert text == "No run with more than one task: nothing could be forgotten."
