"""The run's two small files, as the contract has them."""

from __future__ import annotations

import json

import pytest

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.runs.curricula import read_plan
from rllib_arrow.runs.directory import RunDirectory
from rllib_arrow.runs.load import load_runs
from rllib_arrow.runs.read import read_runs

ROW = {
    "method": "ARROW",
    "suite": "minatar",
    "setting": "default",
    "seed": 1,
    "epoch": 0,
    "frames": 0,
    "trained_task": "",
    "eval_task": "breakout",
    "return_mean": 0.5,
    "return_std": 0.25,
    "episodes": 4,
}


def test_scores_are_written_under_the_contract_header(tmp_path):
    RunDirectory(tmp_path).write_scores([ROW])
    assert (tmp_path / "evaluations.csv").read_text() == (
        "method,suite,setting,seed,epoch,frames,trained_task,eval_task,return_mean,"
        "return_std,episodes\n"
        "ARROW,minatar,default,1,0,0,,breakout,0.5,0.25,4\n"
    )


def curriculum(**changes):
    plan = {"suite": "minatar", "tasks": ["breakout", "freeway"], "epochs_per_task": 3}
    return Curriculum.from_dict(plan | changes)


def test_curriculum_json_has_tasks_and_epochs_in_the_order_of_training(tmp_path):
    run = RunDirectory(tmp_path)
    run.write_curriculum(curriculum(order="reversed", epochs_per_task=[3, 1]), 512)
    assert json.loads((tmp_path / "curriculum.json").read_text()) == {
        "suite": "minatar",
        "setting": "reversed",
        "order": "reversed",
        "tasks": ["freeway", "breakout"],
        "epochs_per_task": [1, 3],
        "cycles": 1,
        "frames_per_epoch": 512,
    }
    run.write_curriculum(curriculum(epochs_per_task=[3, 3]), 512)
    content = json.loads((tmp_path / "curriculum.json").read_text())
    assert content["epochs_per_task"] == 3


@pytest.mark.parametrize("cycles", [1, 2])
def test_what_is_written_is_read_again(tmp_path, cycles):
    written = curriculum(order="reversed", epochs_per_task=[3, 1], cycles=cycles)
    RunDirectory(tmp_path).write_curriculum(written, 512)
    plan = read_plan(tmp_path / "curriculum.json")
    assert plan.exposures == written.exposures
    RunDirectory(tmp_path).write_scores([ROW, ROW | {"eval_task": "freeway"}])
    (run,) = read_runs([tmp_path])
    assert [score._asdict() for score in run.scores][1] == ROW
    assert run.curve.tasks == ("freeway", "breakout")


def test_exposures_that_a_rule_made_are_read_instead_of_the_plan(tmp_path):
    trained = (Exposure("breakout", 1, 0, 2), Exposure("freeway", 1, 2, 5))
    RunDirectory(tmp_path).write_curriculum(curriculum(), 512, trained)
    plan = read_plan(tmp_path / "curriculum.json")
    assert plan.exposures == trained


def test_scores_given_with_a_task_are_recorded_and_normalise_reports(tmp_path):
    own = {"id": "Mine-v0", "name": "mine", "low": 1.0, "high": 3.0}
    written = curriculum(tasks=["breakout", own], epochs_per_task=1)
    run = RunDirectory(tmp_path)
    run.write_curriculum(written, 512)
    plan = read_plan(tmp_path / "curriculum.json")
    assert list(plan.references) == ["mine"]
    mine = ROW | {"eval_task": "mine", "return_mean": 2.0}
    later = {"epoch": 1, "frames": 512, "trained_task": "breakout"}
    run.write_scores([ROW, mine, ROW | later, mine | later])
    normaliser = load_runs(tmp_path).results.normalisers["minatar"]
    assert (normaliser.scales["mine"].low, normaliser.scales["mine"].high) == (1, 3)
    assert "0 and 1 are low and high as given with the task" in str(normaliser.notes)


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    run = RunDirectory(tmp_path)
    run.write_scores([ROW])
    before = (tmp_path / "evaluations.csv").read_text()

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", no_space)
    with pytest.raises(OSError, match="No space left"):
        run.write_scores([ROW, ROW])
    assert (tmp_path / "evaluations.csv").read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["evaluations.csv"]
