"""Reading runs: what is accepted, and what is refused in one clear line."""

from __future__ import annotations

import json
import os

import pytest

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.errors import UserError
from rllib_arrow.runs.read import read_file, read_runs
from tests.runs.made import HEADER, csv_lines, write_csv, write_run

SCORES = {"A": [0, 1, 2, 3, 2], "B": [0, 0, 1, 2, 5]}
EXPOSURE = {"task": "A", "cycle": 1, "start": 0, "end": 2}


def test_a_run_directory_is_read_with_its_curriculum(tmp_path):
    (run,) = read_runs([write_run(tmp_path / "run", SCORES, [2, 2])])
    assert run.curve.tasks == ("A", "B")
    assert run.curve.exposures == (Exposure("A", 1, 0, 2), Exposure("B", 1, 2, 4))
    assert run.curve.frames.tolist() == [0, 100, 200, 300, 400]
    assert run.curve.scores[:, 1].tolist() == [0, 0, 1, 2, 5]
    assert run.plan and run.finished


def test_a_csv_alone_gives_the_same_run_as_with_its_curriculum(tmp_path):
    scores = {"A": range(9), "B": range(9)}
    two = {"cycles": 2, "setting": "two_cycle"}
    (planned,) = read_runs([write_run(tmp_path / "run", scores, [2, 2], **two)])
    lines = csv_lines(scores, [2, 2], **two)
    (alone,) = read_runs([write_csv(tmp_path / "alone.csv", lines)])
    assert alone.curve.tasks == planned.curve.tasks
    assert alone.curve.exposures == planned.curve.exposures
    assert alone.finished and alone.plan is None


def test_one_number_of_epochs_stands_for_all_tasks(tmp_path):
    run = write_run(tmp_path / "run", SCORES, [2, 2])
    plan = json.loads((run / "curriculum.json").read_text()) | {"epochs_per_task": 2}
    (run / "curriculum.json").write_text(json.dumps(plan))
    assert read_runs([run])[0].curve.exposures[1] == Exposure("B", 1, 2, 4)


def test_a_csv_alone_is_unfinished_while_a_task_was_never_trained(tmp_path):
    lines = csv_lines({"A": [0, 1], "B": [0, 0]}, [2, 2])
    (run,) = read_runs([write_csv(tmp_path / "x.csv", lines)])
    assert run.curve.tasks == ("A", "B")
    assert not run.finished


def test_a_tree_and_a_file_with_several_runs_are_all_found(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path / "tree" / f"s{seed}" / "x", SCORES, [2, 2], seed=seed)
    lines = [
        line
        for method in ("DV3", "TES-SAC")
        for line in csv_lines(SCORES, [2, 2], method=method)
    ]
    path = write_csv(tmp_path / "many.csv", lines)
    runs = read_runs([tmp_path / "tree", tmp_path / "tree" / "s1", path])
    keys = [(run.curve.method, run.curve.seed) for run in runs]
    assert sorted(keys) == [("ARROW", 1), ("ARROW", 2), ("DV3", 1), ("TES-SAC", 1)]


def test_single_task_runs_of_one_file_are_told_apart_by_task(tmp_path):
    lines = [
        line
        for task in "AB"
        for line in csv_lines({task: [0, 1]}, [1], setting="single")
    ]
    runs = read_runs([write_csv(tmp_path / "single.csv", lines)])
    assert [run.curve.tasks for run in runs] == [("A",), ("B",)]


def test_the_order_of_the_rows_does_not_matter(tmp_path):
    lines = csv_lines(SCORES, [2, 2])
    (run,) = read_file(write_csv(tmp_path / "x.csv", lines[::-1]))
    assert run.curve.epochs.tolist() == [0, 1, 2, 3, 4]
    assert run.curve.scores[:, run.curve.tasks.index("A")].tolist() == SCORES["A"]


LINES = csv_lines(SCORES, [2, 2])


def changed(column: str, value: str, line: int = 2) -> list[str]:
    """The good lines with one cell of one line (counted as in the file) changed."""
    cells = LINES[line - 2].split(",")
    cells[HEADER.split(",").index(column)] = value
    return [*LINES[: line - 2], ",".join(cells), *LINES[line - 1 :]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (changed("return_mean", "good"), "line 2, column return_mean: 'good' must be"),
        (changed("return_mean", "nan"), "column return_mean: 'nan' must be a finite"),
        (changed("return_mean", ""), "column return_mean: '' must be a number"),
        (changed("return_std", "-1"), "column return_std: '-1' must be at least 0"),
        (changed("episodes", "0"), "column episodes: '0' must be a whole number of"),
        (changed("episodes", "1.5"), "column episodes: '1.5' must be a whole number"),
        (changed("seed", "x"), "column seed: 'x' must be a whole number"),
        (changed("epoch", "-1"), "column epoch: '-1' must be a whole number"),
        (changed("frames", "1e3"), "column frames: '1e3' must be a whole number"),
        (changed("setting", "odd"), "column setting: 'odd' must be default, reversed"),
        (changed("suite", "../x"), "column suite: '../x' must be a name of letters"),
        (changed("eval_task", "a\x07"), "column eval_task: 'a\\x07' must be a name"),
        (changed("method", " "), "column method: ' ' must be a name"),
        (changed("eval_task", ""), "column eval_task: '' must be a name"),
        (changed("trained_task", "A"), "column trained_task: 'A' must be empty at"),
        (changed("trained_task", "", 4), "line 4, column trained_task: '' must be"),
        (changed("trained_task", "B", 5), "line 5, column trained_task: 'B' must be"),
        (changed("frames", "7", 5), "line 5, column frames: 7 must be 100"),
        ([*LINES, LINES[3]], "line 12, column eval_task: 'B' at epoch 1 was already"),
        (LINES[:-1], "the evaluation at epoch 4 lacks eval_task 'B'"),
        ([*LINES[:-1], LINES[-1][:20]], "line 11: 5 values, must be 11"),
        ([], "no evaluations below the header line"),
    ],
)
def test_a_faulty_file_ends_in_one_line_that_names_the_place(tmp_path, lines, message):
    path = write_csv(tmp_path / "evaluations.csv", lines)
    with pytest.raises(UserError) as error:
        read_runs([tmp_path])
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (HEADER.replace(",seed", "").encode(), "line 1: column seed is missing"),
        ((HEADER + ",more").encode(), "line 1: the columns must be method,suite"),
        (b"\xff\xfe\x00", "not a readable CSV file"),
        (b"\x00\x01", "is missing"),
    ],
)
def test_a_file_that_is_no_evaluation_file_is_refused(tmp_path, content, message):
    path = tmp_path / "evaluations.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"evaluations\.csv") as error:
        read_runs([path])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": []}, r"tasks \(\[\]\) must be a list of distinct task names"),
        ({"tasks": ["A", "A"]}, "must be a list of distinct task names"),
        ({"epochs_per_task": [2]}, r"epochs_per_task \(\[2\]\) must be"),
        ({"epochs_per_task": [2, "2"]}, "epochs_per_task"),
        ({"cycles": True}, r"cycles \(True\) must be a whole number above 0"),
        ({"epochs_per_task": [1, 3]}, "trained_task at epoch 2 is 'A', but"),
        ({"tasks": ["A", "C"]}, "column eval_task: 'B' must be one of A, C"),
    ],
)
def test_a_curriculum_that_is_wrong_or_does_not_fit_is_refused(
    tmp_path, change, message
):
    run = write_run(tmp_path / "run", SCORES, [2, 2])
    plan = json.loads((run / "curriculum.json").read_text()) | change
    (run / "curriculum.json").write_text(json.dumps(plan))
    with pytest.raises(UserError, match=message):
        read_runs([run])


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "9" * 5000])
def test_a_curriculum_file_that_is_no_object_is_refused(tmp_path, text):
    run = write_run(tmp_path / "run", SCORES, [2, 2])
    (run / "curriculum.json").write_text(text)
    with pytest.raises(UserError, match=r"curriculum\.json"):
        read_runs([run])


def test_missing_places_and_empty_directories_are_named(tmp_path):
    with pytest.raises(UserError, match="nowhere: no such run directory or CSV file"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(UserError, match=r"no evaluations\.csv in this directory"):
        read_runs([tmp_path])


def test_the_same_run_from_two_places_counts_once(tmp_path):
    for name in ("one", "two"):
        write_run(tmp_path / name, SCORES, [2, 2])
    assert [run.path.parent.name for run in read_runs([tmp_path])] == ["one"]


def test_two_runs_of_one_name_are_refused(tmp_path):
    write_run(tmp_path / "one", SCORES, [2, 2])
    other = {task: [*scores[:-1], 99.0] for task, scores in SCORES.items()}
    write_run(tmp_path / "two", other, [2, 2])
    with pytest.raises(UserError, match="both hold ARROW toy default, seed 1"):
        read_runs([tmp_path])


def test_runs_with_different_curricula_are_not_compared(tmp_path):
    write_run(tmp_path / "one", SCORES, [2, 2])
    write_run(tmp_path / "two", SCORES, [1, 3], seed=2)
    with pytest.raises(UserError, match="different curricula"):
        read_runs([tmp_path])


def test_frames_that_fall_are_refused(tmp_path):
    lines = [line.replace(",4,400,", ",4,250,") for line in LINES]
    path = write_csv(tmp_path / "x.csv", lines)
    with pytest.raises(UserError, match="must not fall"):
        read_runs([path])


def test_several_runs_beside_one_curriculum_are_refused(tmp_path):
    run = write_run(tmp_path / "run", SCORES, [2, 2])
    lines = [line for s in (1, 2) for line in csv_lines(SCORES, [2, 2], seed=s)]
    write_csv(run / "evaluations.csv", lines)
    with pytest.raises(UserError, match="2 runs beside one curriculum"):
        read_runs([run])


def test_a_linked_run_is_followed_once(tmp_path):
    write_run(tmp_path / "elsewhere" / "run", SCORES, [2, 2])
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "run").symlink_to(tmp_path / "elsewhere" / "run")
    (tmp_path / "tree" / "again").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "tree" / "deep" / "loop").symlink_to(tmp_path / "tree")
    (run,) = read_runs([tmp_path / "tree"])
    assert run.finished


@pytest.mark.parametrize("name", ["evaluations.csv", "curriculum.json"])
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path, name):
    run = write_run(tmp_path / "run", SCORES, [2, 2])
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(UserError, match=f"{name}: must be a regular file"):
        read_runs([run])
    (run / name).unlink()
    (run / name).symlink_to("/dev/zero")
    with pytest.raises(UserError, match=f"{name}: must be a regular file"):
        read_runs([run])


def test_a_file_of_an_endless_size_is_refused(tmp_path):
    run = write_run(tmp_path / "run", SCORES, [2, 2])
    for name, size in (("evaluations.csv", 2**40), ("curriculum.json", 2**30)):
        with (run / name).open("r+b") as file:
            file.truncate(size)
    with pytest.raises(UserError, match=r"evaluations.csv: 1,099,511,627,776 bytes"):
        read_runs([run])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"cycles": 10**9},
            r"cycles \(1000000000\) must be at most 50,000 for 2 tasks",
        ),
        ({"epochs_per_task": 10**30}, "epochs_per_task"),
        ({"references": {"C": {"low": 0, "high": 1}}}, "references"),
        ({"references": {"A": {"low": 1, "high": 1}}}, "references"),
        ({"references": {"A": {"low": 1, "high": None}}}, "references"),
        ({"references": {"A": {"low": 1, "high": 10**400}}}, "references"),
        ({"exposures": []}, r"exposures \(\[\]\) must be a list of {task, cycle"),
        ({"exposures": [{"task": "A"}]}, "exposures"),
        ({"exposures": [EXPOSURE | {"task": "C"}]}, "exposures"),
        ({"exposures": [EXPOSURE | {"start": 1}]}, "exposures"),
        ({"exposures": [EXPOSURE, EXPOSURE]}, "exposures"),
        ({"exposures": [EXPOSURE | {"end": 4}]}, "trained_task at epoch 3 is 'B', but"),
    ],
)
def test_a_curriculum_beyond_all_bounds_is_refused_at_once(tmp_path, change, message):
    run = write_run(tmp_path / "run", SCORES, [2, 2])
    plan = json.loads((run / "curriculum.json").read_text()) | change
    (run / "curriculum.json").write_text(json.dumps(plan))
    with pytest.raises(UserError, match=message) as error:
        read_runs([run])
    assert "\n" not in str(error.value) and len(str(error.value)) < 800


def test_a_plan_of_a_thousand_million_epochs_is_read(tmp_path):
    run = write_run(tmp_path / "run", {"A": [0, 1], "B": [0, 0]}, [10**9, 10**9])
    (found,) = read_runs([run])
    assert found.curve.end == 2 * 10**9 and not found.finished


def test_seeds_that_a_rule_switched_at_different_epochs_are_compared(tmp_path):
    for seed, switch in ((1, 1), (2, 3)):
        run = write_run(tmp_path / f"{seed}", SCORES, [switch, 4 - switch], seed=seed)
        plan = json.loads((run / "curriculum.json").read_text())
        plan["epochs_per_task"] = 4  # at most
        plan["exposures"] = [
            {"task": "A", "cycle": 1, "start": 0, "end": switch},
            {"task": "B", "cycle": 1, "start": switch, "end": 4},
        ]
        (run / "curriculum.json").write_text(json.dumps(plan))
    one, two = read_runs([tmp_path])
    assert (one.curve.exposures[0].end, two.curve.exposures[0].end) == (1, 3)
    assert one.finished and two.finished
