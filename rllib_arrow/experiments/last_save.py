"""Saves what can be saved when a signal ends a run."""

from __future__ import annotations

import signal
import time
from typing import Any

from ray.tune import Callback
from ray.tune.result import SHOULD_CHECKPOINT, TRAINING_ITERATION

from rllib_arrow.experiments.signals import GRACE_S, ending


class SaveBeforeTheEnd(Callback):
    """Has every trial save the last epoch it finished, then ends Tune's loop."""

    def __init__(self) -> None:
        self._has_announced = False
        self._finished: dict[str, int] = {}  # by trial: epochs
        self._saved: dict[str, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune saves its callbacks; a resumed run begins anew

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        ending.has_saver = True

    def on_trial_start(
        self, iteration: int, trials: list[Any], trial: Any, **info: Any
    ) -> None:
        for known in (self._finished, self._saved):
            known.pop(trial.trial_id, None)

    def on_trial_result(
        self,
        iteration: int,
        trials: list[Any],
        trial: Any,
        result: dict[str, Any],
        **info: Any,
    ) -> None:
        self._finished[trial.trial_id] = result[TRAINING_ITERATION]
        if ending.number is not None:
            result[SHOULD_CHECKPOINT] = True

    def on_checkpoint(
        self, iteration: int, trials: list[Any], trial: Any, checkpoint: Any, **info
    ) -> None:
        self._saved[trial.trial_id] = self._finished.get(trial.trial_id, 0)

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        if ending.number is None:
            return
        unsaved = [
            trial.trial_id
            for trial in trials
            if trial.status == "RUNNING"
            and self._finished.get(trial.trial_id) != self._saved.get(trial.trial_id)
        ]
        name = signal.Signals(ending.number).name
        if not self._has_announced and unsaved:
            self._has_announced = True
            wait = f"the epoch under way has {GRACE_S:.0f} s to finish and be saved"
            print(f"rllib: {name}: {wait}", flush=True)
        if not unsaved or time.monotonic() > ending.deadline:
            self._stop(name, len(unsaved))

    def _stop(self, name: str, unsaved: int) -> None:
        """Ends Tune's loop, once."""
        if ending.deadline == float("inf"):
            return
        ending.deadline = float("inf")
        state = "the last finished epochs are saved"
        if unsaved:
            state = f"no time to save the last epochs of {unsaved} trials"
        print(f"rllib: {name}: {state}", flush=True)
        signal.raise_signal(signal.SIGINT)
