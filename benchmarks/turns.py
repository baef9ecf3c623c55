"""Sides of a comparison as processes of their own that take turns.

Each side waits for a line and answers with the seconds that one run took. So
no side changes the other's memory, threads or settings, and whatever else the machine
does falls on all of them alike. Standard library only: a side may run in an environment
that has nothing of this project.

BENCH_CLOCK=processor has all sides tell processor time instead of wall-clock time, for
a machine on which other work leaves no side an undisturbed round.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ANSWER = "seconds "
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def chosen_clock() -> Callable[[], float]:
    """Returns the clock that BENCH_CLOCK names."""
    return CLOCKS[os.environ.get("BENCH_CLOCK", "wall")]


def serve(
    run: Callable[[], object],
    runs: int,
    clock: Callable[[], float] | None = None,
) -> None:
    """Warms up, then answers every line on standard input with the mean of `runs`."""
    clock = clock or chosen_clock()
    run()
    print(f"{ANSWER}0", flush=True)
    for _ in sys.stdin:
        started = clock()
        for _ in range(runs):
            run()
        print(f"{ANSWER}{(clock() - started) / runs}", flush=True)


class Side:
    """A process that serves rounds."""

    def __init__(self, module: str, *arguments: object, python: str = "") -> None:
        self.command = [python or sys.executable, "-m", module, *map(str, arguments)]
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        self._read_answer()

    def round(self) -> float:
        """Returns the mean seconds of one more round of runs."""
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self._read_answer()

    def _read_answer(self) -> float:
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                return float(line.removeprefix(ANSWER))
        last = (self.process.stderr.read().strip().splitlines() or ["no output"])[-1]
        raise RuntimeError(f"{' '.join(self.command)} ended early: {last}")

    def close(self) -> None:
        """Ends the process."""
        self.process.communicate()


def best_of_turns(sides: dict[str, Side], repeats: int) -> dict[str, float]:
    """Returns each side's best round."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(repeats):
        for name, side in sides.items():
            best[name] = min(best[name], side.round())
    return best
