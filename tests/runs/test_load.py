"""Runs as data frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rllib_arrow
from rllib_arrow.errors import UserError
from rllib_arrow.reports import write_report
from rllib_arrow.runs.load import load_runs
from rllib_arrow.runs.scores import COLUMNS
from tests.runs.made import SCORES, csv_lines, write_csv, write_run, write_singles


@pytest.fixture
def tree(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path / "runs" / f"{seed}", SCORES, [1, 1], seed=seed)
    write_run(tmp_path / "runs" / "3", {"A": [10, 12], "B": [0, 0]}, [1, 1], seed=3)
    write_singles(tmp_path / "single")
    return tmp_path


def test_scores_are_the_rows_of_the_files_and_where_they_lie(tree):
    scores = load_runs(tree / "runs").scores
    assert list(scores) == [*COLUMNS, "run"]
    assert len(scores) == 2 * 6 + 4
    file = pd.read_csv(tree / "runs" / "2" / "evaluations.csv", keep_default_na=False)
    mine = scores[scores.run == str(tree / "runs" / "2")].drop(columns="run")
    pd.testing.assert_frame_equal(
        mine.reset_index(drop=True), file, check_dtype=False, check_like=True
    )


def test_metrics_are_those_of_the_report_by_seed(tree):
    runs = load_runs(tree / "runs", baselines=tree / "single")
    page = write_report(runs, tree / "out")
    file = pd.read_csv(page.with_name("metrics_by_seed.csv"))
    pd.testing.assert_frame_equal(runs.metrics, file, check_dtype=False)
    value = runs.metrics.set_index(["seed", "metric"]).value
    assert value[1, "F"] == pytest.approx(0.25)
    assert np.isnan(value[3, "F"])  # unfinished beside finished ones


def test_curricula_have_a_row_per_stretch_of_training(tree):
    curricula = load_runs(tree / "runs", baselines=[tree / "single"]).curricula
    one = curricula[curricula.run == str(tree / "runs" / "1")]
    found = one[["task", "cycle", "start", "end"]].to_numpy().tolist()
    assert found == [["A", 1, 0, 1], ["B", 1, 1, 2]]
    assert set(curricula.setting) == {"default", "single"}


def test_a_file_with_several_runs_is_named_itself(tmp_path):
    lines = [line for s in (1, 2) for line in csv_lines(SCORES, [1, 1], seed=s)]
    path = write_csv(tmp_path / "many.csv", lines)
    assert set(load_runs(path).scores.run) == {str(path)}


def test_scores_need_no_metric_to_be_defined(tmp_path):
    run = write_run(tmp_path / "run", {"A": [1, 1, 1], "B": [2, 2, 2]}, [1, 1])
    runs = load_runs(str(run))
    assert len(runs.scores) == 6 and runs.metrics.empty


def test_the_package_offers_the_loader():
    assert rllib_arrow.load_runs is load_runs


def test_no_runs_at_all_are_refused():
    with pytest.raises(UserError, match="no runs were given"):
        load_runs()
