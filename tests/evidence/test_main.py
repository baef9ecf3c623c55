"""The command behind `make evidence`."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.evidence.__main__ import ROOT, main
from benchmarks.evidence.plan import read_plan
from rllib_arrow.experiments import tuned_examples
from rllib_arrow.experiments.experiment import read_experiment

TINY_PLAN = """
seeds: [1]
groups:
  - group: smoke/default
    methods: {TES-SAC: tes_sac_smoke}
    seeds: 1
    set: {updates_per_epoch: 2, curriculum.epochs_per_task: 1}
pages:
  smoke:
    groups: {report: [default]}
    tables: {default: {}}
"""


@pytest.fixture
def arguments(plan_file, storage, rllib, tmp_path):
    """Returns the arguments that make everything happen below tmp_path."""
    places = {"--plan": plan_file, "--storage": storage, "--rllib": rllib}
    places["--out"] = tmp_path / "pages"
    return [str(word) for pair in places.items() for word in pair]


def test_one_command_runs_all_and_writes_the_pages(arguments, tmp_path, capsys):
    assert main(arguments) == 0
    assert "10 of 10 runs finished" in capsys.readouterr().out
    page = (tmp_path / "pages" / "games" / "README.md").read_text()
    assert "| A at the end | 1.00 | 9.02 | 3.02 | 2.02 |" in page
    assert (tmp_path / "pages" / "games" / "report" / "index.html").is_file()


def test_what_stands_where_can_be_listed(arguments, storage, capsys):
    (storage / "fails").write_text("dv3_3")
    assert main([*arguments, "--only", "games/default/"]) == 1
    capsys.readouterr()
    assert main([*arguments, "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("finished  games/default/arrow_3 ")
    assert lines[1].startswith("cut       games/default/dv3_3 ")
    assert lines[4] == "to do     games/single/arrow_a_3"
    assert lines[-1] == "3 of 10 runs finished"


def test_two_at_once_are_refused_in_one_line(arguments, storage, capsys):
    with open(storage / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "another `make evidence`" in said


def test_after_a_kill_its_runs_hold_the_lock_until_they_end(arguments, storage, calls):
    (storage / "slow").write_text("arrow_3 dv3_3")
    process = _start(arguments)
    while len(calls()) < 2:
        time.sleep(0.1)
    process.kill()
    process.wait()
    assert main(arguments) == 2
    (storage / "slow").unlink()
    for directory in Path("/proc").glob("[0-9]*"):
        if _is_fake_run(directory, storage):
            os.kill(int(directory.name), signal.SIGKILL)
    deadline = time.monotonic() + 10
    while (code := main([*arguments, "--only", "games/default/"])) == 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert code == 0


def test_an_interrupt_ends_it_with_everything_resumable(arguments, storage, calls):
    (storage / "slow").write_text("arrow_3 dv3_3")
    process = _start(arguments)
    while len(calls()) < 2:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    (storage / "slow").unlink()
    assert main(arguments) == 0
    resumed = {name for name, how, *_ in calls() if how is True}
    assert resumed == {"arrow_3", "dv3_3"}


def _start(arguments):
    command = [sys.executable, "-m", "benchmarks.evidence", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


def _is_fake_run(directory: Path, storage: Path) -> bool:
    try:
        words = (directory / "cmdline").read_bytes()
    except OSError:
        return False
    return b"fake_rllib.py" in words and str(storage).encode() in words


@pytest.mark.parametrize("fast", [False, True])
def test_the_projects_plan_names_examples_and_settings_that_exist(fast):
    plan = read_plan(ROOT / "docs" / "results" / "evidence.yaml", fast)
    seen = set()
    for run in plan.runs():
        command = run.command(["rllib"], Path("s"), False)
        settings = [command[i + 1] for i, w in enumerate(command) if w == "--set"]
        if (key := (run.example, *settings[:-1])) not in seen:
            seen.add(key)
            experiment = read_experiment(tuned_examples.find(run.example), settings)
            assert experiment.config["seed"] == run.seed


@pytest.mark.slow
def test_a_real_run_goes_all_the_way_to_its_page(tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(TINY_PLAN)
    words = ["--plan", plan, "--storage", tmp_path / "s", "--out", tmp_path / "pages"]
    assert main([str(word) for word in words]) == 0
    page = (tmp_path / "pages" / "smoke" / "README.md").read_text()
    assert "TES-SAC (1 seed)" in page and "Space invaders at the end" in page
