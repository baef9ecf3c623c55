"""The run's two small files, as the contract has them."""

from __future__ import annotations

import json

import pytest

from rllib_arrow.evaluation.run_directory import RunDirectory
from rllib_arrow.evaluation.score_table import write_atomically

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


def test_curriculum_is_written_as_json(tmp_path):
    RunDirectory(tmp_path).write_curriculum({"tasks": ["a"], "cycles": 1})
    content = json.loads((tmp_path / "curriculum.json").read_text())
    assert content == {"tasks": ["a"], "cycles": 1}


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    target = tmp_path / "evaluations.csv"
    write_atomically(target, "old")

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", no_space)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["evaluations.csv"]
