"""What a run does when it is told to end: SIGTERM of a machine that is taken away,
SIGHUP of a terminal that is closed.

Before training, the command simply ends. While Tune trains, the epoch under way gets
some time to finish and to be saved; then Tune writes its list and stops its trials.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
GRACE_S = 20.0  # machines that are taken away leave thirty seconds or more


class Terminated(BaseException):
    """A signal came while nothing was under way that needs to be saved."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


class Ending:
    """Whether a signal came, and how it is answered; one for the whole process."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.deadline = float("inf")
        self.is_training = False  # Tune's loop is at work
        self.has_saver = False  # and one of its callbacks looks here

    def __call__(self, number: int, frame: Any) -> None:
        """Handles a signal; a second one ends the training at once."""
        first, self.number = self.number is None, number
        if number == signal.SIGHUP:
            _let_go_of_the_terminal()
        if not self.is_training:
            raise Terminated(number)
        if first and self.has_saver:
            self.deadline = time.monotonic() + GRACE_S
        else:
            signal.raise_signal(signal.SIGINT)  # upon which Tune ends its loop

    def exit_code(self, code: int) -> int:
        """Returns the code of a process that a signal ended, or the given one."""
        return code if self.number is None else 128 + self.number


ending = Ending()


def handle_signals() -> None:
    """Installs the handlers; a signal that is ignored, as `nohup` does, stays so."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, ending)


@contextmanager
def starting_ray() -> Iterator[None]:
    """Guards the start of Ray, which handles SIGTERM in its own way.

    Ray's processes inherit that SIGHUP is blocked: a terminal sends it to all of them,
    and without them nothing could be saved any more.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    except SystemExit as error:
        raise Terminated(signal.SIGTERM) from error
    finally:
        handle_signals()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


@contextmanager
def training() -> Iterator[None]:
    """Marks the time in which a signal has to wait for what can be saved."""
    ending.is_training = True
    try:
        yield
    finally:
        ending.is_training = ending.has_saver = False


def _let_go_of_the_terminal() -> None:
    """Sends what is still said to nowhere, if the terminal that showed it is gone."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream.isatty():
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
