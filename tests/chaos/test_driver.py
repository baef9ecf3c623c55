"""Whole runs under Tune are killed, or run out of disk, and go on with --resume.

Every test compares the run's evaluations.csv, byte for byte, with that of a run in
which nothing happened.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

METHODS = ("arrow", "dv3", "tes_sac")
# Runs a command as a root to whom permissions apply.
MORTAL = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
# The smoke examples have six epochs, a checkpoint each, and keep two.
LAST_TWO = ["checkpoint_000004", "checkpoint_000005"]
# With room for the first checkpoints but not for all that a run writes.
DISK_MB = {"arrow": 6, "dv3": 6, "tes_sac": 8}
# Ray names its processes after the class they run; a learner's is Ray Train's.
VICTIMS = {"learner": ("_WrappedExecutable",), "trial": ("ARROW", "DV3", "TESSAC")}


def command(method: str, storage: Path) -> list[str]:
    run = [
        sys.executable,
        "-m",
        "rllib_arrow.experiments.cli",
        "train",
        "file",
        f"{method}_smoke",
    ]
    run += ["--storage", str(storage), "--name", "run"]
    # A learner of its own, to be killed alone.
    return [*run, "--set", "num_learners=1", "--set", "num_cpus_per_learner=1"]


def finish(method: str, storage: Path, *more: str) -> str:
    """Lets a run go on to its end; returns what it printed."""
    done = subprocess.run(
        [*command(method, storage), *more], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def scores(storage: Path) -> bytes:
    (file,) = storage.glob("run/*/evaluations.csv")
    return file.read_bytes()


def checkpoints(storage: Path) -> list[str]:
    return sorted(path.name for path in storage.glob("run/*/checkpoint_*"))


def descendants(pid: int) -> dict[int, str]:
    """Returns the command lines of all processes that come from this one."""
    parents, titles = {}, {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text().rpartition(")")[2].split()
            titles[int(path.name)] = " ".join(
                (path / "cmdline").read_text().replace("\0", " ").split()
            )
            parents[int(path.name)] = int(stat[1])
        except OSError:
            continue  # gone meanwhile
    found = {}
    for child in parents:
        ancestor = child
        while ancestor in parents and ancestor != pid:
            ancestor = parents[ancestor]
        if ancestor == pid and child != pid:
            found[child] = titles[child]
    return found


def find(driver: int, kind: str) -> int | None:
    """Returns the process of that kind, if there is one yet."""
    if kind == "driver":
        return driver
    named = tuple(f"ray::{name}" for name in VICTIMS[kind])
    found = (p for p, title in descendants(driver).items() if title.startswith(named))
    return next(found, None)


def run_and_kill(
    method: str,
    kind: str,
    storage: Path,
    moments: dict[int, float],
    how: int = signal.SIGKILL,
) -> tuple[int, str]:
    """Starts or resumes a run; kills a part of it some seconds after epochs' lines."""
    more = ["--resume"] if (storage / "run").exists() else []
    waiting = dict(moments)
    with subprocess.Popen(
        [*command(method, storage), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said = ""
        for line in process.stdout:
            said += line
            epoch = re.search(r"epoch (\d+)/", line)
            if epoch and int(epoch[1]) in waiting:
                time.sleep(waiting.pop(int(epoch[1])))
                victim = find(process.pid, kind)
                assert victim, f"no {kind}: {said}"
                os.kill(victim, how)
    assert not waiting, said
    return process.returncode, said


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Returns a method's scores when nothing happens; each method runs once."""
    known: dict[str, bytes] = {}

    def of(method: str) -> bytes:
        if method not in known:
            storage = tmp_path_factory.mktemp(method)
            finish(method, storage)
            known[method] = scores(storage)
        return known[method]

    return of


def moments(kind: str, method: str) -> dict[int, float]:
    rng = random.Random(f"{kind} {method}")
    return {epoch: rng.uniform(0.0, 1.0) for epoch in (2, 4)}


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_driver_is_resumed_to_the_same_scores(method, tmp_path, undisturbed):
    for epoch, delay in moments("driver", method).items():
        code, _ = run_and_kill(method, "driver", tmp_path, {epoch: delay})
        assert code == -signal.SIGKILL
    finish(method, tmp_path, "--resume")
    assert scores(tmp_path) == undisturbed(method)
    assert checkpoints(tmp_path) == LAST_TWO


@pytest.mark.parametrize("method", METHODS)
def test_a_run_whose_newest_checkpoint_is_damaged_goes_on_from_the_one_before(
    method, tmp_path, undisturbed
):
    # Terminated, a run writes down which checkpoints it has, so the newest is known.
    code, _ = run_and_kill(method, "driver", tmp_path, {3: 0.0}, signal.SIGTERM)
    assert code == 143
    newest = max(tmp_path.glob("run/*/checkpoint_*"))
    weights = newest / "learner_group/learner/rl_module/module_state.pkl"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    said = finish(method, tmp_path, "--resume")
    assert f"{weights} does not match its checksum" in said, said
    assert "Went on from" in said and "failed" not in said, said
    assert scores(tmp_path) == undisturbed(method)


@pytest.mark.parametrize("kind", ["driver", "trial"])
def test_a_run_killed_while_it_writes_a_checkpoint_is_resumed_from_the_one_before(
    kind, tmp_path, undisturbed
):
    half_written = []
    for number in (1, 3):
        more = ["--resume"] if (tmp_path / "run").exists() else []
        with subprocess.Popen(
            [*command("arrow", tmp_path), *more], stdout=subprocess.DEVNULL
        ) as process:
            # Tune copies a checkpoint there file by file; looking for the victim takes
            # longer than that.
            victim = None
            while not [*tmp_path.glob(f"run/*/checkpoint_00000{number}/learner_group")]:
                assert process.poll() is None
                victim = victim or find(process.pid, kind)
                time.sleep(0.002)
            os.kill(victim, signal.SIGKILL)
            [path] = tmp_path.glob(f"run/*/checkpoint_00000{number}")
            half_written.append(not (path / "seal").exists())
            if kind == "trial":
                os.kill(process.pid, signal.SIGKILL)
    assert any(half_written)
    finish("arrow", tmp_path, "--resume")
    assert scores(tmp_path) == undisturbed("arrow")


def test_a_run_whose_directory_turns_unwritable_says_so_and_goes_on_later(
    tmp_path, undisturbed
):
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("permissions do not hold for root, and setpriv is not there")
    said = ""
    with subprocess.Popen(
        [*(MORTAL if os.geteuid() == 0 else ()), *command("arrow", tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout:
            said += line
            if re.search(r"epoch 3/\d+ \w+,", line):
                [trial] = tmp_path.glob("run/*_seed=*")
                trial.chmod(0o555)
    assert process.returncode != 0, said
    assert "Permission denied" in said and "Traceback" not in said, said
    assert str(trial) in said.splitlines()[-2], said
    trial.chmod(0o755)
    finish("arrow", tmp_path, "--resume")
    assert scores(tmp_path) == undisturbed("arrow")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["learner", "trial"])
def test_a_run_whose_learner_or_trial_is_killed_goes_on_by_itself(
    kind, method, tmp_path, undisturbed
):
    code, said = run_and_kill(method, kind, tmp_path, moments(kind, method))
    assert code == 0, said
    assert said.count("to be resumed from its last checkpoint") == 2, said
    assert "Traceback" not in said, said
    assert scores(tmp_path) == undisturbed(method)
    assert checkpoints(tmp_path) == LAST_TWO


@pytest.fixture
def small_disk(tmp_path, request):
    """A file system that fills up, and a way to enlarge it."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options: str) -> bool:
        words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        return subprocess.run(words, capture_output=True).returncode == 0

    if not mount(f"size={DISK_MB[request.node.callspec.params['method']]}m"):
        pytest.skip("mounting a small file system needs root")
    yield place, lambda: mount("remount,size=1g")
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_filled_the_disk_goes_on_when_there_is_room(
    method, small_disk, undisturbed
):
    place, enlarge = small_disk
    full = subprocess.run(command(method, place), capture_output=True, text=True)
    said = full.stdout + full.stderr
    assert full.returncode != 0, said
    assert "No space left on device" in said and "Traceback" not in said, said
    assert enlarge()
    finish(method, place, "--resume")
    assert scores(place) == undisturbed(method)
