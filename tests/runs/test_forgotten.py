"""inside.csv and memory.csv, read and made sense of."""

from __future__ import annotations

import math

import pytest

from rllib_arrow.errors import UserError
from rllib_arrow.runs.forgotten import by_seed, forgotten, parts_forgot
from rllib_arrow.runs.inside import (
    Inside,
    Memory,
    probe_file,
    read_findings,
    strip_file,
    to_csv,
)
from rllib_arrow.runs.load import load_runs
from tests.runs.made import SCORES, write_run

# Task A ends at epoch 1, B at 2. Untrained 0.2, so three quarters or all are lost.
KEPT = {("ARROW", 1): 0.8, ("ARROW", 2): 0.6, ("DV3", 1): 0.4, ("DV3", 2): 0.0}


def rows_of(agreement: float) -> list[Inside]:
    return [
        Inside(1, "A", 1, "actor", "agreement", 1.0),
        Inside(2, "A", 1, "actor", "agreement", agreement),
        Inside(2, "B", 1, "actor", "agreement", 1.0),
        Inside(0, "A", 1, "actor", "agreement", 0.2),
        Inside(0, "B", 1, "actor", "agreement", 0.5),
        Inside(2, "A", 1, "actor", "kl", 3.0),
        Inside(2, "", 0, "actor", "dormant", 0.1),
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("inside")
    for (method, seed), agreement in KEPT.items():
        directory = root / f"{method}{seed}"
        write_run(directory, SCORES, [1, 1], method=method, seed=seed)
        (directory / "inside.csv").write_text(to_csv(Inside, rows_of(agreement)))
    memory = [Memory(1, "fifo", "A", "chunks", 4), Memory(1, "ltdm", "", "age_min", 0)]
    (directory / "memory.csv").write_text(to_csv(Memory, memory))
    write_run(root / "plain", SCORES, [1, 1], method="TES-SAC")
    return load_runs(root)


def test_frames_hold_the_rows_of_all_runs_that_were_looked_into(runs):
    assert len(runs.inside) == 4 * 7
    first = runs.inside.iloc[0]
    assert (first.epoch, first.frames, first.task) == (0, 0, "A")
    assert set(runs.inside.frames) == {0, 100, 200}
    assert runs.memory.value.tolist() == [4, 0]
    assert set(runs.memory.method) == {"DV3"}


def test_the_share_forgotten_is_0_at_the_tasks_end_and_1_as_if_untrained(runs):
    shares = forgotten(runs.inside)
    one = shares[(shares.method == "ARROW") & (shares.seed == 1)]
    one = one[one.measure == "agreement"].set_index(["task", "epoch"]).forgotten
    assert one["A", 1] == 0 and one["B", 2] == 0
    assert one["A", 2] == pytest.approx(0.25)  # 0.8 lies a quarter down to 0.2


def test_a_part_is_judged_by_the_tasks_that_could_be_forgotten(runs):
    ends = by_seed(forgotten(runs.inside))
    assert len(ends) == 4 and set(ends.part) == {"actor"}
    found = {(r.method, r.seed): r.forgotten for r in ends.itertuples()}
    assert found[("ARROW", 2)] == pytest.approx(0.5)
    assert found[("DV3", 2)] == pytest.approx(1.25)


def test_methods_are_compared_seed_by_seed(runs):
    arrow, dv3 = parts_forgot(runs.inside, "default", ["ARROW", "DV3"])
    assert (arrow.part, arrow.mean.value) == ("actor", pytest.approx(0.375))
    assert arrow.mean.low == pytest.approx(0.25) and not arrow.minus
    # 0.25 - 0.75 and 0.5 - 1.25.
    paired = dv3.minus["ARROW"]
    assert paired.mean.value == pytest.approx(-0.625)
    assert (paired.higher, paired.seeds) == (0, 2)
    assert parts_forgot(runs.inside, "reversed", ["ARROW"]) == []


def test_rows_come_back_from_a_file_and_faults_are_named(tmp_path):
    path = tmp_path / "inside.csv"
    rows = [Inside(3, "a, b", 1, "critic", "drift", math.nan)]
    path.write_text(to_csv(Inside, rows))
    [row] = read_findings(Inside, path)
    assert row[:5] == rows[0][:5] and math.isnan(row.value)
    assert read_findings(Inside, tmp_path / "none.csv") == []
    head = ",".join(Inside._fields)
    for text, told in {
        "epoch,value\n": "line 1: column task is missing; the columns must be epoch",
        f"{head}\n1,a,1,actor\n": "line 2: 4 values, must be 6",
        f"{head}\n-1,a,1,actor,kl,0\n": "line 2, column epoch: '-1' must be",
        f"{head}\n1,a,1,actor,kl,much\n": "column value: 'much' must be a number",
        f"{head}\n1,a,1,actor,kl,inf\n": "column value: 'inf' must be a finite",
    }.items():
        path.write_text(text)
        with pytest.raises(UserError, match=told):
            read_findings(Inside, path)


def test_names_of_files_are_plain_whatever_a_task_is_called():
    tasks = ("minigrid/lava_gap", "../x", "minigrid lava_gap")
    names = [probe_file(tasks, task) for task in tasks]
    assert names == [
        *("probes/1_minigrid_lava_gap.npz", "probes/2__x.npz"),
        "probes/3_minigrid_lava_gap.npz",
    ]
    assert strip_file(tasks, tasks[0], "at_its_end").endswith("_gap_at_its_end.png")
