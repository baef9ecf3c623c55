"""Starts runs side by side, one process each, and can be stopped at any time."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.evidence.plan import PlannedRun
from benchmarks.evidence.records import Record, RunDirectory

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0  # seconds that an interrupted run gets to put itself in order
TELL_EVERY = 300.0


@dataclass
class Process:
    """A run that is under way."""

    directory: RunDirectory
    process: subprocess.Popen
    log: IO[bytes]
    began: float


class Runner:
    """Runs what is not finished, in order, as many at a time as there are `jobs`.

    Nothing has to be told when it stops: a run that was cut is continued from its
    newest checkpoint, a finished one is skipped.

    Args:
        runs: In the order of starting.
        storage: The directory of all runs.
        rllib: The command, as the words it consists of.
        commit: Asked at each start, and noted with the run.
        jobs: How many run side by side.
        keep: File descriptors that the processes inherit: while one of them lives, a
            lock on such a file is held.
        tell: Takes lines for the user.
    """

    def __init__(
        self,
        runs: Sequence[PlannedRun],
        storage: Path,
        rllib: Sequence[str],
        commit: Callable[[], str],
        jobs: int,
        keep: Sequence[int] = (),
        tell: Callable[[str], None] = print,
    ) -> None:
        self._storage, self._rllib, self._commit = storage, tuple(rllib), commit
        self._jobs, self._keep, self._tell = jobs, tuple(keep), tell
        self._directories = [RunDirectory(storage, run) for run in runs]
        self._active: list[Process] = []
        self._stopping = False
        self.failed: list[RunDirectory] = []

    def stop(self) -> None:
        """Starts no further run and interrupts those under way."""
        if not self._stopping:
            self._stopping = True
            for active in self._active:
                active.process.send_signal(signal.SIGINT)
            self._stop_by = time.monotonic() + PATIENCE

    def go(self, seconds: float | None = None) -> bool:
        """Runs until all is done or `seconds` have passed; tells whether all is."""
        began = told = time.monotonic()
        waiting = [d for d in self._directories if not d.finished]
        self._tell(self._progress())
        while self._active or (waiting and not self._stopping):
            while waiting and not self._stopping and len(self._active) < self._jobs:
                self._start(waiting.pop(0))
            self._collect()
            now = time.monotonic()
            if seconds is not None and now - began > seconds and not self._stopping:
                self._tell("The time is up: runs under way are saved and stopped.")
                self.stop()
            if self._stopping and now > self._stop_by:
                for active in self._active:
                    active.process.kill()
            if now - told > TELL_EVERY:
                told = now
                self._tell(self._progress())
            time.sleep(0.1)
        self._tell(self._progress())
        return all(d.finished for d in self._directories)

    def _start(self, directory: RunDirectory) -> None:
        resume = directory.can_resume
        record = directory.record if resume else Record()
        command = directory.run.command(self._rllib, self._storage, resume)
        record.command = [Path(command[0]).name, *map(self._publishable, command[1:])]
        if record.commits[-1:] != [commit := self._commit()]:
            record.commits.append(commit)
        directory.note(record)
        log = open(directory.log, "ab")
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=_environment(),
            pass_fds=self._keep,
            # An interrupt at the keyboard is ours to hand on, once.
            start_new_session=True,
            preexec_fn=_heed_interrupts,
        )
        self._active.append(Process(directory, process, log, time.monotonic()))
        how = "continues" if resume else "starts"
        self._tell(f"{directory.run.path} {how}")

    def _publishable(self, word: str) -> str:
        """Returns a word of a command without where this machine keeps things."""
        for folder in (ROOT, self._storage.parent):
            word = word.removeprefix(f"{folder}/")
        return word

    def _collect(self) -> None:
        for active in list(self._active):
            code = active.process.poll()
            if code is None:
                continue
            self._active.remove(active)
            active.log.close()
            directory = active.directory
            record = directory.record
            record.seconds += time.monotonic() - active.began
            record.finished = code == 0
            directory.note(record)
            if code == 0:
                took = duration(record.seconds)
                self._tell(f"{directory.run.path} finished after {took}")
                self._tell(self._progress())
            elif not self._stopping:
                self.failed.append(directory)
                said = _last_line(directory.log)
                self._tell(f"{directory.run.path} FAILED ({code}): {said}")
                self._tell(f"  its log: {directory.log}")

    # Progress

    def _progress(self) -> str:
        done = sum(d.finished for d in self._directories)
        parts = [f"{done} of {len(self._directories)} runs finished"]
        if self._active:
            parts.append(f"{len(self._active)} under way")
        if self.failed:
            parts.append(f"{len(self.failed)} failed")
        if done < len(self._directories):
            left = self.seconds_left()
            told = "unknown until a run ends" if left is None else duration(left)
            parts.append(f"time left: {told}")
        return "; ".join(parts)

    def seconds_left(self) -> float | None:
        """Returns an estimate made from finished runs, the more alike the better."""
        finished = [(d.run, d.record.seconds) for d in self._directories if d.finished]
        if not finished:
            return None
        now = time.monotonic()
        elapsed = {a.directory.run.path: now - a.began for a in self._active}
        total = 0.0
        for directory in self._directories:
            if not directory.finished:
                run = directory.run
                spent = directory.record.seconds + elapsed.get(run.path, 0.0)
                total += max(0.0, _expected(run, finished) - spent)
        return total / self._jobs


def _heed_interrupts() -> None:
    """Undoes what a shell does to jobs in its background, which ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _environment() -> dict[str, str]:
    """One thread for each run, and the code of this tree, whose commit is noted."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    code = {"PYTHONPATH": os.pathsep.join(paths)}
    return {**os.environ, **code, "OMP_NUM_THREADS": "1"}


def _expected(run: PlannedRun, finished: list[tuple[PlannedRun, float]]) -> float:
    """The mean over the same method in the group, else the method, else all."""
    for alike in (
        lambda other: (other.group, other.method) == (run.group, run.method),
        lambda other: other.group == run.group,
        lambda other: other.method == run.method,
        lambda other: True,
    ):
        if seconds := [s for other, s in finished if alike(other)]:
            return sum(seconds) / len(seconds)
    raise AssertionError("there is at least one finished run")


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no word")


def duration(seconds: float) -> str:
    """Returns a time as a person would say it."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
