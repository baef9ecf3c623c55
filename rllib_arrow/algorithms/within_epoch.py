"""Tells how far an epoch is while it is under way, to a board that a display reads.

The board is a Ray actor, because trials and learners are processes of their own, maybe
on other machines. Where nobody started one, nothing is told and nothing is lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError

BOARD = "rllib_arrow_progress"  # found by name within the driver's own job
INTERVAL_S = 1.0  # between two messages of one learner

COLLECTING, LEARNING, EVALUATING = "collecting", "learning", "evaluating"
COMPILING = "compiling the updates, 20 s to a minute"


class Phase(NamedTuple):
    """What a trial is doing."""

    task: str
    epoch: int  # the one under way, counted from 1
    total_epochs: int
    doing: str
    done: int = 0  # updates, while learning
    total: int = 0
    seconds: float = 0.0  # for which it has been learning

    def seconds_left(self) -> float | None:
        """Returns how long the rest of the updates takes, once some are done."""
        if not self.done:
            return None
        return self.seconds / self.done * (self.total - self.done)


@contextmanager
def open_board() -> Iterator[ActorHandle]:
    """Starts the board of this job, and keeps it for as long as the block runs."""

    # Defined here, Ray sends it by value, and it keeps plain tuples: so its process
    # need not import this package, which takes seconds.
    class Board:
        def __init__(self) -> None:
            self.phases: dict[str, tuple] = {}

        def write(self, trial: str, phase: tuple) -> None:
            self.phases[trial] = phase

        def read(self) -> dict[str, tuple]:
            return self.phases

    named = ray.remote(num_cpus=0)(Board).options(name=BOARD, get_if_exists=True)
    board = named.remote()  # Ray ends an actor that nobody holds a handle of
    yield board


def find_board() -> ActorHandle | None:
    """Returns the board of this job, if there is one."""
    try:
        return ray.get_actor(BOARD) if ray.is_initialized() else None
    except ValueError:
        return None


class PhaseTeller:
    """Tells the board what one trial does, under the name of its directory."""

    def __init__(self, storage: Any = None) -> None:
        """Takes Tune's storage of the trial; outside of Tune, nobody is told."""
        # RLlib drops the trial's id, which Tune would hand to an algorithm.
        self._trial = PurePosixPath(storage.trial_fs_path).name if storage else ""
        self._board = find_board() if storage else None

    def tell(self, phase: Phase) -> None:
        """Sends a phase, without waiting for it to arrive."""
        if self._board is not None:
            self._board.write.remote(self._trial, tuple(phase))

    def updates(self, phase: Phase) -> UpdateTeller | None:
        """Returns what a learner calls with each update, or None without a board."""
        return UpdateTeller(self, phase) if self._board is not None else None


class UpdateTeller:
    """Tells the board how many updates are done, once a second at most."""

    def __init__(self, teller: PhaseTeller, phase: Phase) -> None:
        self._teller = teller
        self._phase = phase
        self._began: float | None = None  # on the clock of the learner's process
        self._told_at = float("-inf")

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._began is None:
            # The first update may compile; the pace is that of those after it.
            self._began, self._first = now, done
        if now - self._told_at >= INTERVAL_S:
            self._told_at = now
            seconds = (now - self._began) / max(done - self._first, 1) * done
            self._teller.tell(
                self._phase._replace(done=done, total=total, seconds=seconds)
            )

    def announce(self, doing: str) -> None:
        """Tells what the learner does before its first update."""
        self._teller.tell(self._phase._replace(doing=doing))


class BoardReader:
    """Reads the board without ever waiting for it."""

    def __init__(self) -> None:
        self._phases: dict[str, Phase] = {}
        self._asked: ray.ObjectRef | None = None

    def __call__(self) -> dict[str, Phase]:
        """Returns the phases as they were when the board last answered."""
        if self._asked is None:
            board = find_board()
            if board is None:
                return {}
            self._asked = board.read.remote()
        ready, _ = ray.wait([self._asked], timeout=0)
        if ready:
            self._asked = None
            try:
                read = ray.get(ready[0])
                self._phases = {trial: Phase(*phase) for trial, phase in read.items()}
            except RayError:  # it died; the run goes on
                self._phases = {}
        return self._phases
