"""At most one process works in a directory, and a dead one does not block it."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
from pathlib import Path

import pytest

from rllib_arrow.errors import UserError
from rllib_arrow.lock import LOCK, locked

FORK = multiprocessing.get_context("fork")  # real processes that start at once


class Holder:
    """A process that takes the lock, says so, and holds it until it is told to end."""

    def __init__(self, directory: Path):
        self.said, self.told = FORK.SimpleQueue(), FORK.Event()
        self.process = FORK.Process(target=self._hold, args=(directory,))
        self.process.start()

    def _hold(self, directory: Path) -> None:
        try:
            with locked(directory):
                self.said.put("held")
                self.told.wait()
        except UserError as error:
            self.said.put(str(error))


def test_of_processes_that_start_at_once_exactly_one_gets_the_lock(tmp_path):
    run = tmp_path / "storage" / "run"
    started = [Holder(run) for _ in range(6)]
    said = [holder.said.get() for holder in started]
    assert said.count("held") == 1
    winner = started[said.index("held")]
    for line in set(said) - {"held"}:
        assert line.startswith(f"{run}: another run is at work there: process ")
    pid = winner.process.pid
    with pytest.raises(UserError, match=f"process {pid} on "), locked(run):
        pass
    winner.told.set()
    for holder in started:
        holder.process.join()
    # Nothing was written there, so nothing stays.
    assert not (tmp_path / "storage").exists()


def test_the_lock_of_a_dead_process_is_taken_over_with_a_line(tmp_path):
    holder = Holder(tmp_path)
    assert holder.said.get() == "held"
    holder.process.kill()
    holder.process.join()
    assert json.loads((tmp_path / LOCK).read_text())["pid"] == holder.process.pid
    lines: list[str] = []
    with locked(tmp_path, lines.append):
        mine = json.loads((tmp_path / LOCK).read_text())
        assert mine["pid"] == os.getpid() and mine["host"] == socket.gethostname()
    [line] = lines
    assert f"took over the lock of process {holder.process.pid}" in line
    assert not (tmp_path / LOCK).exists()
    with locked(tmp_path, lines.append):
        assert len(lines) == 1


def test_the_lock_of_another_machine_is_believed_until_it_is_removed(tmp_path):
    theirs = json.dumps({"host": "elsewhere", "pid": 7, "started": "then"})
    (tmp_path / LOCK).write_text(theirs)
    with pytest.raises(UserError, match=r"process 7 on elsewhere.*remove .*\.lock"):
        with locked(tmp_path):
            pass
    assert (tmp_path / LOCK).read_text() == theirs
    (tmp_path / LOCK).unlink()
    with locked(tmp_path):
        pass


@pytest.mark.parametrize("content", ["", "{", "[1]", "\xff"])
def test_a_lock_nobody_signed_is_free(content, tmp_path):
    (tmp_path / LOCK).write_text(content)
    with locked(tmp_path):
        pass


def test_what_was_written_under_the_lock_stays(tmp_path):
    run = tmp_path / "storage" / "run"
    with locked(run):
        (run / "scores").touch()
    assert [path.name for path in run.iterdir()] == ["scores"]


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(descriptor, how):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("rllib_arrow.lock.fcntl.flock", refuse)
    with pytest.raises(UserError, match=rf"{tmp_path}/run: .*cannot lock files"):
        with locked(tmp_path / "run"):
            pass
    assert not (tmp_path / "run").exists()
