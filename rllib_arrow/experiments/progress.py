"""Shows how far a run is: redrawn in place on a terminal, else line by line."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from ray.tune import Callback

from rllib_arrow.algorithms.within_epoch import BoardReader, Phase
from rllib_arrow.experiments.trial import Trial, duration

REDRAW_S = 0.5
LINE_S = 60.0  # between the lines on an epoch under way, where lines are not redrawn
BAR = 24


def reason(error: str) -> str:
    """Returns the line of an error's text that says what went wrong.

    The text may hold the tracebacks of several processes, the first cause last, and
    Ray's advice after it.
    """
    named = re.findall(
        r"^\s*(?:[\w.]+\.)?(\w+(?:Error|Exception)\b.*: .+)$", error, re.M
    )
    lines = named or error.strip().splitlines() or ["no reason given"]
    return lines[-1].strip().rstrip(".")


def _error_of(trial: Any) -> str:
    # The driver's own copy: the one in storage is missing when the disk is full.
    file = Path(trial.error_file or "")
    return reason(file.read_text() if file.is_file() else "")


def _number(value: Any) -> str:
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


class ProgressDisplay(Callback):
    """A Tune callback; `stream` is a terminal or a file."""

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        phases: Callable[[], dict[str, Phase]] | None = None,
    ):
        self._stream = stream
        self._clock = clock
        self._phases = phases or BoardReader()
        self._trials: dict[str, Trial] = {}
        self._drawn = 0  # lines on the terminal that the next drawing replaces
        self._drawn_at = float("-inf")

    def __getstate__(self) -> dict[str, Any]:
        # Tune saves its callbacks with the run; a resumed run shows its own session.
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()

    @property
    def stream(self) -> TextIO:
        return self._stream or sys.stdout

    def on_trial_start(
        self, iteration: int, trials: list[Any], trial: Any, **info: Any
    ) -> None:
        label = ", ".join(
            f"{key.split('/')[-1]}={_plain(value)}"
            for key, value in trial.evaluated_params.items()
        )
        known = Trial(label or trial.trial_id, Path(trial.path).name, self._clock())
        self._trials[trial.trial_id] = known
        self._tell_of(known, "started")

    def on_trial_result(
        self,
        iteration: int,
        trials: list[Any],
        trial: Any,
        result: dict[str, Any],
        **info: Any,
    ) -> None:
        known = self._trials[trial.trial_id]
        known.update(result, self._clock())
        progress = result["curriculum"]
        if result.get("recovered"):
            self._tell_of(known, result["recovered"])
        if not self.stream.isatty():
            self._tell_of(known, self._plain_line(known))
        if progress["switch"]:
            switch = f"{progress['task']} -> {progress['next_task']}"
            switch = f"task switch after epoch {progress['epoch']}: {switch}"
            self._tell_of(known, switch)
        self._draw(trials)

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        now = self._clock()
        if now - self._drawn_at < REDRAW_S:
            return
        self._drawn_at = now
        phases = self._phases()
        for known in self._trials.values():
            if known.directory in phases:
                known.take(phases[known.directory], now)
        self._draw(trials)
        if not self.stream.isatty():
            for known in self._trials.values():
                if known.phase and now - known.line_at >= LINE_S:
                    self._tell_of(known, self._phase_line(known))

    def on_trial_complete(
        self, iteration: int, trials: list[Any], trial: Any, **info: Any
    ) -> None:
        self._end(trial, "finished")

    def on_trial_recover(
        self, iteration: int, trials: list[Any], trial: Any, **info: Any
    ) -> None:
        how = f"failed ({_error_of(trial)}), to be resumed from its last checkpoint"
        self._end(trial, how)

    def on_trial_error(
        self, iteration: int, trials: list[Any], trial: Any, **info: Any
    ) -> None:
        self._end(trial, f"failed ({_error_of(trial)})")

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        # Interrupted trials: what was on the screen last stays there.
        for trial in trials:
            self._end(trial, "stopped")
        self._erase()
        self.stream.flush()

    def _end(self, trial: Any, how: str) -> None:
        known = self._trials.pop(trial.trial_id, None)
        if known is None:
            return
        took = duration(self._clock() - known.started)
        progress = known.result.get("curriculum")
        if how == "stopped" and progress:
            how = f"stopped after epoch {progress['epoch']}/{progress['total_epochs']},"
        scores = f": {self._scores(known)}" if known.scores else ""
        self._tell_of(known, f"{how} after {took}{scores}")

    def _tell_of(self, known: Trial, line: str) -> None:
        """Writes a line on a trial that stays."""
        self._erase()
        known.line_at = self._clock()
        print(f"[{known.label}] {line}", file=self.stream, flush=True)

    def _draw(self, trials: list[Any]) -> None:
        if not self.stream.isatty():
            return
        self._erase()
        self._drawn_at = self._clock()
        lines = [line for known in self._trials.values() for line in self._block(known)]
        waiting = sum(trial.status == "PENDING" for trial in trials)
        if waiting:
            lines.append(f"{waiting} of {len(trials)} trials wait for resources")
        size = shutil.get_terminal_size()
        # A line that wraps, or a block taller than the screen, could not be replaced.
        lines = [line[: size.columns - 1] for line in lines][: size.lines - 1]
        self.stream.write("".join(f"{line}\n" for line in lines))
        self.stream.flush()
        self._drawn = len(lines)

    def _erase(self) -> None:
        if self._drawn:
            self.stream.write(f"\x1b[{self._drawn}F\x1b[J")
            self._drawn = 0

    def _block(self, known: Trial) -> list[str]:
        elapsed = duration(self._clock() - known.started)
        within = [f"  {self._phase_line(known)}"] if known.phase else []
        if not known.result:
            return [known.label, *within, f"  first epoch, {elapsed} so far"]
        progress = known.result["curriculum"]
        share = progress["epoch"] / progress["total_epochs"]
        bar = ("#" * round(BAR * share)).ljust(BAR, ".")
        task = progress["next_task"] or progress["task"]
        return [
            known.label,
            f"  {task}  epoch {progress['epoch']}/{progress['total_epochs']} [{bar}]",
            *within,
            f"  {self._speed(known)}  {elapsed} so far, {self._left(known)}",
            f"  {self._scores(known)}",
        ]

    def _phase_line(self, known: Trial) -> str:
        phase = known.phase
        doing = known.within_epoch(self._clock())
        return f"epoch {phase.epoch}/{phase.total_epochs} {phase.task}: {doing}"

    def _plain_line(self, known: Trial) -> str:
        progress = known.result["curriculum"]
        scores = f" | {self._scores(known)}" if known.has_new_scores else ""
        return (
            f"epoch {progress['epoch']}/{progress['total_epochs']} {progress['task']}, "
            f"{self._speed(known)}, {self._left(known)}{scores}"
        )

    def _speed(self, known: Trial) -> str:
        result = known.result
        return (
            f"{result['frames']:,} frames, {_number(result['frames_per_s'])} frames/s, "
            f"{_number(result['updates_per_s'])} updates/s"
        )

    def _left(self, known: Trial) -> str:
        return f"{duration(known.seconds_left(self._clock()))} left"

    def _scores(self, known: Trial) -> str:
        if not known.scores:
            return "no scores yet"
        scores = "  ".join(f"{task} {_number(s)}" for task, s in known.scores.items())
        return f"scores after epoch {known.scores_epoch}: {scores}"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
