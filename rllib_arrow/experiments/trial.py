"""What is known of one running trial, for the display of progress."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rllib_arrow.algorithms.within_epoch import Phase

SILENCE_S = 60.0  # from then on, a silent learner's time left means nothing


@dataclass
class Trial:
    """The results of a trial so far, and what it is doing now."""

    label: str
    directory: str  # its name
    started: float
    updated: float = 0.0  # when the last results came
    first_epoch: int = 0  # finished before this session, if the run was resumed
    result: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    scores_epoch: int = -1
    has_new_scores: bool = False
    phase: Phase | None = None
    phase_at: float = 0.0  # when it was first seen
    line_at: float = 0.0  # when the last line was written

    def update(self, result: dict[str, Any], now: float) -> None:
        """Takes in the results of one more epoch."""
        self.updated, self.phase = now, None
        if not self.result:
            self.first_epoch = result["curriculum"]["epoch"] - 1
        self.result = result
        evaluation = result.get("evaluation") or {}
        scores = {
            task: score["return_mean"]
            for task, score in evaluation.items()
            if isinstance(score, dict) and "return_mean" in score
        }
        epoch = evaluation.get("epoch", 0)
        # Results repeat the last scores until there are new ones.
        self.has_new_scores = bool(scores) and epoch != self.scores_epoch
        if scores:
            self.scores, self.scores_epoch = scores, epoch

    def seconds_left(self, now: float) -> float:
        """Returns the time the remaining epochs take at the pace of this session."""
        progress = self.result["curriculum"]
        done = progress["epoch"] - self.first_epoch
        left = progress["total_epochs"] - progress["epoch"]
        left_then = left * (self.updated - self.started) / max(done, 1)
        return max(0.0, left_then - (now - self.updated))

    def take(self, phase: Phase, now: float) -> None:
        """Takes in what the trial is doing, unless that epoch is over by now."""
        finished = self.result["curriculum"]["epoch"] if self.result else 0
        if phase.epoch <= finished:
            self.phase = None
        elif phase != self.phase:
            self.phase, self.phase_at = phase, now

    def within_epoch(self, now: float) -> str:
        """Returns what the trial is doing, and how long the epoch's updates take."""
        left = self.phase.seconds_left()
        if left is None:
            return self.phase.doing
        counted = f"update {self.phase.done:,} of {self.phase.total:,}"
        silent = now - self.phase_at
        if silent > max(SILENCE_S, left):
            return f"{counted}, no news for {duration(silent)}"
        return f"{counted}, {duration(max(0.0, left - silent))} left in this epoch"


def duration(seconds: float) -> str:
    """Returns a time as one would say it: 45 s, 12 min, 3 h 20 min, 2 d 4 h."""
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if seconds < 60:
        return f"{int(seconds)} s"
    if hours == 0:
        return f"{minutes} min"
    if hours < 24:
        return f"{hours} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"
