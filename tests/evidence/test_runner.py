"""Running: side by side, resumable, honest about what failed."""

import signal
import subprocess
import threading
import time

import pytest

from benchmarks.evidence.plan import PlannedRun
from benchmarks.evidence.records import (
    Record,
    RunDirectory,
    commit_of,
    odd_commits,
)
from benchmarks.evidence.runner import Runner, _expected, duration

ALL = ["arrow_3", "dv3_3", "arrow_1", "dv3_1"]


def names(calls):
    return [name for name, how, *_ in calls if how != "end"]


def test_all_is_run_once_and_what_is_finished_is_skipped(make_runner, calls):
    runner, told = make_runner(["games/default/"])
    assert runner.go()
    assert sorted(names(calls())) == sorted(ALL)
    assert all(threads == "1" for _, how, threads, _ in calls() if how != "end")
    assert told[0] == "0 of 4 runs finished; time left: unknown until a run ends"
    assert told[-1] == "4 of 4 runs finished"
    again, told = make_runner(["games/default/"])
    assert again.go() and len(names(calls())) == 4
    assert told == ["4 of 4 runs finished"] * 2


@pytest.mark.parametrize("jobs", [1, 3])
def test_as_many_run_side_by_side_as_there_are_jobs(make_runner, jobs):
    runner, told = make_runner(["games/default/"], jobs)
    assert runner.go()
    under_way, most = 0, 0
    for line in told:
        under_way += line.endswith(" starts")
        most = max(most, under_way)
        under_way -= " finished after " in line
    assert most == jobs and under_way == 0


def test_a_failed_run_is_named_with_its_reason_and_the_others_go_on(
    make_runner, storage, calls
):
    (storage / "fails").write_text("dv3_3")
    runner, told = make_runner(["games/default/"])
    assert not runner.go()
    assert [d.run.name for d in runner.failed] == ["dv3_3"]
    said = next(line for line in told if "FAILED" in line)
    assert said == "games/default/dv3_3 FAILED (2): rllib: it was told to fail"
    assert told[-1].startswith("3 of 4 runs finished; 1 failed")
    (storage / "fails").unlink()
    assert make_runner(["games/default/"])[0].go()
    assert [call[:2] for call in calls()[-2:]] == [["dv3_3", True], ["dv3_3", "end"]]


def test_when_the_time_is_up_runs_are_interrupted_and_nothing_is_called_a_failure(
    make_runner, storage, calls
):
    (storage / "slow").write_text(" ".join(ALL))
    runner, told = make_runner(["games/default/"])
    assert not runner.go(seconds=1.5)
    assert set(names(calls())) <= {"arrow_3", "dv3_3"} and not runner.failed
    assert any(line.startswith("The time is up") for line in told)


def test_what_was_stopped_is_continued_and_nothing_more_is_started(
    make_runner, storage, calls
):
    (storage / "slow").write_text(" ".join(ALL))
    runner, _ = make_runner(["games/default/"])

    def stop():
        while len(names(calls())) < 2:
            time.sleep(0.05)
        runner.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    # As in a shell's background, where a run would inherit that it is to be ignored.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert not runner.go()
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join()
    assert sorted(names(calls())) == ["arrow_3", "dv3_3"]
    (storage / "slow").unlink()
    assert make_runner(["games/default/"])[0].go()
    resumed = {name: how for name, how, *_ in calls()[2:] if how != "end"}
    assert resumed == {"arrow_3": True, "dv3_3": True, "arrow_1": False, "dv3_1": False}


def test_each_run_has_the_commits_and_seconds_of_all_its_attempts(
    make_runner, storage, plan
):
    (storage / "fails").write_text("dv3_3")
    make_runner(["games/default/"], commit="c1")[0].go()
    (storage / "fails").unlink()
    make_runner(["games/default/"], commit="c2")[0].go()
    directories = [RunDirectory(storage, run) for run in plan.runs(["games/default/"])]
    commits = {d.run.name: d.record.commits for d in directories}
    assert commits.pop("dv3_3") == ["c1", "c2"]
    assert set(map(tuple, commits.values())) == {("c1",)}
    assert odd_commits(directories) == {"games/default/dv3_3": ["c1", "c2"]}
    record = directories[0].record
    assert 0.2 < record.seconds < 60 and record.finished
    assert record.command[:4] == ["rllib", "train", "file", "arrow_minatar"]


def test_a_run_without_anything_to_resume_starts_anew(make_runner, storage, plan):
    directory = RunDirectory(storage, plan.runs()[0])
    directory.note(Record(["c0"], 100.0))
    make_runner(["games/default/"], commit="c1")[0].go()
    assert directory.record.commits == ["c1"] and directory.record.seconds < 60


def test_the_commit_of_a_run_is_the_newest_that_bears_on_it(tmp_path):
    def git(*words):
        identity = ("-c", "user.name=x", "-c", "user.email=x@x")
        subprocess.run(["git", "-C", tmp_path, *identity, *words], check=True)

    def commit(path):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        with open(tmp_path / path, "a") as file:
            file.write("x")
        git("add", "-A")
        git("commit", "-qm", path)
        return commit_of(tmp_path)

    assert commit_of(tmp_path) == "unknown"
    git("init", "-q")
    first = commit("rllib_arrow/a.py")
    assert commit("docs/results/scores.csv") == first
    assert commit("rllib_arrow/reports/page.py") == first
    second = commit("tuned_examples/a.yaml")
    assert second != first and len(second) == 12
    (tmp_path / "docs" / "more.md").touch()
    assert commit_of(tmp_path) == second
    (tmp_path / "rllib_arrow" / "b.py").touch()
    assert commit_of(tmp_path) == f"{second}-dirty"


def test_time_left_goes_by_the_runs_that_are_most_alike():
    def run(group, method, seed=1):
        return PlannedRun(group, method, "x", seed)

    finished = [(run("g", "A"), 100.0), (run("g", "A", 2), 200.0), (run("g", "B"), 5.0)]
    assert _expected(run("g", "A", 3), finished) == 150.0
    assert _expected(run("g", "C"), finished) == pytest.approx(305 / 3)
    assert _expected(run("h", "B"), finished) == 5.0
    assert _expected(run("h", "C"), finished) == pytest.approx(305 / 3)


@pytest.mark.parametrize(
    ("seconds", "said"), [(12, "12 s"), (90, "2 min"), (7300, "2 h 2 min")]
)
def test_durations_are_told_as_a_person_would(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize("checkout", [".", "elsewhere"])
def test_commands_are_recorded_without_the_place_of_checkout_and_storage(
    make_runner, storage, plan, monkeypatch, checkout
):
    root = storage.parent / checkout
    monkeypatch.setattr("benchmarks.evidence.runner.ROOT", root)
    make_runner(["games/default/arrow_3"])[0].go()
    told = RunDirectory(storage, plan.runs()[0]).record.command
    assert told[-4:] == ["--storage", "storage/games/default", "--name", "arrow_3"]


def test_time_left_is_told_of_runs_whose_settings_are_lists(storage, rllib):
    settings = (("label_settings", ["tau"]),)
    runs = [
        PlannedRun("games/default", "ARROW", "arrow_minatar", seed, "", settings)
        for seed in (1, 2, 3)
    ]
    told: list[str] = []
    runner = Runner(runs, storage, [str(rllib)], lambda: "c1", 2, tell=told.append)
    assert runner.go()
    assert any("1 of 3 runs finished; 1 under way; time left" in t for t in told)
