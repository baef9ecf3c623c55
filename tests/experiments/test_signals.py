"""SIGTERM and SIGHUP: what can be saved is saved, and nothing stays behind."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

from rllib_arrow.experiments import last_save, signals, tuned_examples
from rllib_arrow.experiments.cli import main
from rllib_arrow.experiments.last_save import SaveBeforeTheEnd

FORK = multiprocessing.get_context("fork")


def train_for_ever(begun) -> None:
    # The tests may run under `nohup`, whose wish the command would respect.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

    def wait(name: str) -> None:
        begun.set()
        time.sleep(60)

    tuned_examples.find = wait
    sys.exit(main(["train", "file", "arrow_smoke"]))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_before_ray_starts_a_signal_ends_the_command_with_its_code(number, code):
    begun = FORK.Event()
    process = FORK.Process(target=train_for_ever, args=(begun,))
    process.start()
    begun.wait()
    os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode == code


@pytest.fixture
def ending(monkeypatch):
    """A fresh answer to signals, in training, and the interrupts it sends to Tune."""
    fresh, sent = signals.Ending(), []
    fresh.is_training = True
    for module in (signals, last_save):
        monkeypatch.setattr(module, "ending", fresh)
    monkeypatch.setattr(signal, "raise_signal", sent.append)
    fresh.sent = sent
    return fresh


def trial(name: str) -> SimpleNamespace:
    return SimpleNamespace(trial_id=name, status="RUNNING")


def test_an_epoch_that_is_not_saved_yet_is_waited_for_and_saved(ending, capsys):
    saver, a = SaveBeforeTheEnd(), trial("a")
    saver.on_step_begin(0, [a])
    saver.on_trial_result(0, [a], a, {"training_iteration": 1})
    ending(signal.SIGTERM, None)
    saver.on_step_end(0, [a])
    assert ending.sent == [] and "SIGTERM: the epoch" in capsys.readouterr().out
    result = {"training_iteration": 2}
    saver.on_trial_result(1, [a], a, result)
    assert result["should_checkpoint"] is True
    saver.on_step_end(1, [a])
    assert ending.sent == []  # asked for, but not written yet
    saver.on_checkpoint(2, [a], a, None)
    saver.on_step_end(2, [a])
    saver.on_step_end(3, [a])
    assert ending.sent == [signal.SIGINT]  # once: Tune ends at a second one at once
    assert "the last finished epochs are saved" in capsys.readouterr().out
    assert ending.exit_code(130) == 143


def test_what_is_saved_already_is_not_waited_for(ending):
    saver, a = SaveBeforeTheEnd(), trial("a")
    saver.on_step_begin(0, [a])
    saver.on_trial_result(0, [a], a, {"training_iteration": 1})
    saver.on_checkpoint(0, [a], a, None)
    ending(signal.SIGHUP, None)
    saver.on_step_end(1, [a])
    assert ending.sent == [signal.SIGINT] and ending.exit_code(130) == 129


def test_when_time_is_up_the_run_ends_and_says_what_was_not_saved(
    ending, monkeypatch, capsys
):
    saver, a = SaveBeforeTheEnd(), trial("a")
    saver.on_step_begin(0, [a])
    saver.on_trial_result(0, [a], a, {"training_iteration": 1})
    ending(signal.SIGTERM, None)
    late = time.monotonic() + signals.GRACE_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: late)
    saver.on_step_end(1, [a])
    assert ending.sent == [signal.SIGINT]
    assert "no time to save the last epochs of 1 trials" in capsys.readouterr().out


def test_a_second_signal_waits_for_nothing(ending):
    SaveBeforeTheEnd().on_step_begin(0, [])
    ending(signal.SIGTERM, None)
    assert ending.sent == []
    ending(signal.SIGTERM, None)
    assert ending.sent == [signal.SIGINT]


def test_a_run_resumed_without_the_saver_is_ended_as_by_an_interrupt(ending):
    ending(signal.SIGTERM, None)
    assert ending.sent == [signal.SIGINT]


# Whole runs.


def processes_with(mark: str) -> dict[int, str]:
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes():
                found[int(path.name)] = (path / "cmdline").read_text()
        except OSError:
            continue  # gone, or not ours
    return found


def start(storage: Path, *more: str) -> tuple[subprocess.Popen, str]:
    command = [sys.executable, "-m", "rllib_arrow.experiments.cli", "train", "file"]
    command += ["tes_sac_smoke", "--storage", str(storage), "--name", "run", *more]
    command += ["--set", "checkpoint_config.checkpoint_frequency=5"]
    mark = f"SIGNALS_{uuid.uuid4().hex}"
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {mark: "1"},
        start_new_session=True,  # so that a group can be sent what a terminal sends
    )
    return process, mark


def gone(mark: str) -> bool:
    until = time.monotonic() + 15
    while processes_with(mark) and time.monotonic() < until:
        time.sleep(0.2)
    return not processes_with(mark)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("send", "number", "code"),
    [(os.kill, signal.SIGTERM, 143), (os.killpg, signal.SIGHUP, 129)],
)
def test_a_run_that_is_told_to_end_saves_its_last_epoch_and_goes_on_from_it(
    send, number, code, tmp_path
):
    process, mark = start(tmp_path)
    with process:
        for line in process.stdout:
            if re.search(r"epoch 2/6 \w+,", line):
                send(process.pid, number)
                break
        rest = process.stdout.read()
    assert process.returncode == code, rest
    assert "the last finished epochs are saved" in rest, rest
    assert "1 of 1 trials are not finished" in rest and "--resume" in rest
    assert re.search(r"stopped after epoch \d/6, after .*: scores after epoch", rest)
    assert gone(mark)
    resumed, _ = start(tmp_path, "--resume")
    said, _ = resumed.communicate()
    assert resumed.returncode == 0, said
    assert "epoch 3/6" not in said and "epoch 4/6" in said and "epoch 6/6" in said


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_terminated_while_ray_starts_leaves_no_process_behind(tmp_path):
    process, mark = start(tmp_path)
    while not any("gcs_server" in title for title in processes_with(mark).values()):
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    said, _ = process.communicate()
    assert process.returncode == 143, said
    assert said.endswith("rllib: ended by SIGTERM\n") and "Traceback" not in said
    assert gone(mark)
    assert not (tmp_path / "run").exists()
