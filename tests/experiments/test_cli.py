"""The `rllib` command: what it accepts, and how it says no."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
import ray

from rllib_arrow.experiments import tuned_examples
from rllib_arrow.experiments.cli import main
from rllib_arrow.lock import locked
from rllib_arrow.settings import SettingError
from tests.experiments.tools import GOOD, one_error_line, tree

BAD_COMMANDS = {
    "no command": ([], ["COMMAND"]),
    "unknown command": (["trian"], ["trian", "train"]),
    "no file": (["train", "file"], ["FILE"]),
    "missing file": (["train", "file", "gone.yaml"], ["gone.yaml", "no such file"]),
    "misspelt example": (["train", "file", "arow_atari"], ["'arrow_atari'"]),
    "a directory": (["train", "file", "."], ["directory"]),
    "not text": (["train", "file", "noise.yaml"], ["noise.yaml", "UTF-8"]),
    "set without value": (
        ["train", "file", "good.yaml", "--set", "gamma"],
        ["--set", "'gamma'", "KEY=VALUE"],
    ),
    "set with empty path": (
        ["train", "file", "good.yaml", "--set", "a..b=1"],
        ["--set", "a..b=1"],
    ),
    "set unknown key": (
        ["train", "file", "good.yaml", "--set", "config.gama=1"],
        ["--set config.gama=1", "config.gama", "'gamma'"],
    ),
    "set unknown task": (
        ["train", "file", "good.yaml", "--set", "curriculum.tasks=[pong]"],
        ["--set curriculum.tasks=[pong]", "'pong'"],
    ),
    "set broken yaml": (
        ["train", "file", "good.yaml", "--set", "gamma=[1"],
        ["--set gamma=[1", "not valid YAML"],
    ),
    "unknown stop": (
        ["train", "file", "good.yaml", "--stop", "frame=1"],
        ["--stop", "stop.frame", "'frames'"],
    ),
    "samples in words": (
        ["train", "file", "good.yaml", "--num-samples", "five"],
        ["--num-samples", "'five'"],
    ),
    "path as name": (
        ["train", "file", "good.yaml", "--name", "a/b"],
        ["--name", "'a/b'"],
    ),
    "nothing to resume": (
        ["train", "file", "good.yaml", "--resume"],
        ["results/mine", "--resume"],
    ),
    "unknown option": (["train", "file", "good.yaml", "--fast"], ["--fast"]),
    "missing checkpoint": (["evaluate", "gone"], ["gone", "no such checkpoint"]),
    "not a checkpoint": (["evaluate", "."], ["not an RLlib checkpoint"]),
    "no episodes": (["evaluate", ".", "--episodes", "0"], ["--episodes", "'0'"]),
    "empty task name": (["evaluate", ".", "--tasks", "a,,b"], ["--tasks", "'a,,b'"]),
    "csv in no directory": (
        ["evaluate", "checkpoint", "--csv", "no/where.csv"],
        ["--csv no/where.csv"],
    ),
    "report without out": (["report", "good.yaml"], ["--out"]),
    "report of nothing": (["report", "gone", "--out", "o"], ["gone", "no such run"]),
    "report without baselines": (
        ["report", "good.yaml", "--out", "o", "--baselines", "gone"],
        ["gone"],
    ),
    "report of another file": (["report", "good.yaml", "--out", "o"], ["good.yaml"]),
    "unknown example": (["example", "show", "dv3_atary"], ["'dv3_atari'"]),
}


@pytest.mark.parametrize("mistake", BAD_COMMANDS)
def test_a_bad_command_is_refused_in_one_line(mistake, here, capsys):
    (here / "good.yaml").write_text(GOOD)
    (here / "noise.yaml").write_bytes(b"\xff\xfe\x00mine")
    (here / "checkpoint").mkdir()
    (here / "checkpoint" / "rllib_checkpoint.json").write_text("{}")
    before = tree(here)
    argv, fragments = BAD_COMMANDS[mistake]
    line = one_error_line(capsys, argv)
    for fragment in fragments:
        assert fragment in line
    assert tree(here) == before


def test_debug_adds_the_traceback(here, capsys):
    (here / "bad.yaml").write_text("")
    assert main(["train", "file", "bad.yaml", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_more_cpus_than_exist_are_refused_by_name(here, capsys, ray_two_cpus):
    (here / "good.yaml").write_text(GOOD)
    argv = ["train", "file", "good.yaml", "--set", "num_env_runners=64"]
    line = one_error_line(capsys, argv)
    assert "good.yaml: num_env_runners=64 needs 65 CPUs, the cluster has 2" in line
    assert not (here / "results").exists()


def test_more_gpus_than_exist_are_refused_by_name(here, capsys, ray_two_cpus):
    (here / "good.yaml").write_text(GOOD)
    argv = ["train", "file", "good.yaml", "--set", "num_gpus_per_learner=1"]
    line = one_error_line(capsys, argv)
    assert "num_gpus_per_learner=1 needs 1 GPUs, the cluster has 0" in line


def test_example_list_names_every_file_in_its_group(capsys):
    assert main(["example", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    files = [path.stem for path in tuned_examples.directory().glob("*.yaml")]
    assert sorted(listed) == sorted(files)
    described = [line.split()[0] for line in lines if re.match(r"  \S+ +\S", line)]
    assert described == listed
    titles = [line for line in lines if not line.startswith("  ")]
    suites = ["Atari", "CoinRun", "MinAtar", "MinAtar variants", "MiniGrid"]
    assert titles[:-1] == ["A first look", *suites, "Sweeps"]


def test_example_show_prints_the_file(capsys):
    assert main(["example", "show", "arrow_atari"]) == 0
    file = tuned_examples.directory() / "arrow_atari.yaml"
    assert capsys.readouterr().out == file.read_text()


def test_evaluate_points_to_the_newest_checkpoint_of_a_run(here, capsys):
    for name in ("checkpoint_000001", "checkpoint_000002"):
        (here / "trial" / name).mkdir(parents=True)
        (here / "trial" / name / "rllib_checkpoint.json").write_text("{}")
    line = one_error_line(capsys, ["evaluate", "trial"])
    assert "trial/checkpoint_000002 is one" in line


def test_evaluate_prints_a_table_and_writes_the_csv(here, capsys, monkeypatch):
    from rllib_arrow.checkpoints import restore_to_act
    from rllib_arrow.runs.scores import COLUMNS

    row = dict.fromkeys(COLUMNS, 1) | {"method": "ARROW", "eval_task": "breakout"}
    row["return_mean"] = 3.14159
    asked = {}

    def evaluate_checkpoint(path, episodes, tasks):
        asked.update(path=path, episodes=episodes, tasks=tasks)
        return [row]

    monkeypatch.setattr(restore_to_act, "evaluate_checkpoint", evaluate_checkpoint)
    monkeypatch.setattr("rllib_arrow.experiments.cluster.connect", lambda debug: None)
    (here / "point").mkdir()
    (here / "point" / "rllib_checkpoint.json").write_text("{}")
    options = ["--episodes", "3", "--tasks", "breakout", "--csv", "out.csv"]
    assert main(["evaluate", "point", *options]) == 0
    assert asked == {"path": here / "point", "episodes": 3, "tasks": ["breakout"]}
    told, header, table, _ = capsys.readouterr().out.splitlines()
    assert told == "ARROW on 1 (1, seed 1), after epoch 1, 1 frames"
    assert header.split() == ["eval_task", "return_mean", "return_std", "episodes"]
    assert table.split() == ["breakout", "3.142", "1", "1"]
    with open("out.csv", newline="") as file:
        assert [r["eval_task"] for r in csv.DictReader(file)] == ["breakout"]


def fail_with(error: Exception, monkeypatch) -> None:
    def raise_it() -> None:
        raise error

    monkeypatch.setattr(tuned_examples, "grouped", raise_it)


def test_a_bug_is_called_a_bug_and_its_traceback_kept_in_a_file(monkeypatch, capsys):
    fail_with(ValueError("two\nlines"), monkeypatch)
    assert main(["example", "list"]) == 1
    line = capsys.readouterr().err
    told = re.fullmatch(
        r"rllib: this is a bug: ValueError: two lines \(traceback: (.+)\)\n", line
    )
    file = Path(told[1])
    assert file.read_text().startswith("Traceback") and "raise_it" in file.read_text()
    file.unlink()
    assert main(["example", "list", "--debug"]) == 1
    shown = capsys.readouterr().err
    assert "raise_it" in shown and shown.endswith("bug: ValueError: two lines\n")


def test_a_users_error_in_an_actor_is_still_the_users(
    monkeypatch, capsys, ray_two_cpus
):
    @ray.remote(num_cpus=0)
    def refuse() -> None:
        raise SettingError("seed", -1, "must be a whole number >= 0")

    monkeypatch.setattr(tuned_examples, "grouped", lambda: ray.get(refuse.remote()))
    assert main(["example", "list"]) == 2
    line = capsys.readouterr().err
    assert line == "rllib: seed (-1) must be a whole number >= 0.\n"


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_a_run_that_another_process_works_on_is_neither_started_nor_resumed(
    more, here, capsys
):
    (here / "good.yaml").write_text(GOOD)
    with locked(here / "results" / "mine"):
        before = tree(here)
        line = one_error_line(capsys, ["train", "file", "good.yaml", *more])
        assert "results/mine: another run is at work there: process" in line
        assert tree(here) == before
