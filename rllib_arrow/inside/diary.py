"""Keeps what was seen inside a run's networks and memory, epoch by epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import ray

from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.inside.anatomy import Arrays, Finding
from rllib_arrow.inside.on_learner import Seen, look
from rllib_arrow.inside.play import LENGTH, SEQUENCES
from rllib_arrow.runs.directory import RunDirectory
from rllib_arrow.runs.inside import (
    AT_ITS_END,
    AT_THE_END,
    BUFFERS,
    INSIDE_CSV,
    MEMORY_CSV,
    Inside,
    Memory,
    probe_file,
    strip_file,
    to_csv,
)

PLASTICITY = "plasticity"


class Examined(Protocol):
    """What a diary needs of the algorithm that it is about."""

    config: Any
    curriculum: Curriculum
    run_directory: RunDirectory | None
    replay: Any

    def call_learners(self, function: Callable[[Any], Any]) -> list[Any]:
        """Returns what the function gives on each learner."""

    def play_probe(self, task: str, epoch: int) -> Arrays:
        """Returns rows of a task, played by the policy as it stands."""


class Diary:
    """What diagnostics saw of one run; it writes the run's files about it.

    Every random number comes from streams of its own, so a run learns the same with and
    without a diary.
    """

    def __init__(self, algorithm: Examined) -> None:
        self._algorithm = algorithm
        self._inside: list[Inside] = []
        self._memory: list[Memory] = []
        self._probes: dict[str, tuple[int, bytes]] = {}  # by task: cycle and content
        self._strips: dict[str, bytes] = {}  # by the file's name

    def end_epoch(
        self,
        finished: int,
        ended: bool,
        stats: dict[str, Any],
        learned: dict[str, float],
    ) -> dict[str, Any]:
        """Notes what the memory holds and, when it is time, looks into the networks.

        Args:
            finished: How many epochs are.
            ended: Whether the training of a task ended with the last of them.
            stats: What replay told of the epoch.
            learned: What the learners did.

        Returns:
            What was seen of the networks, by task and part, and the seconds it took.
        """
        began = time.perf_counter()
        self._note_memory(finished, stats)
        interval = self._algorithm.config.evaluation_interval
        if not ended and (not interval or finished % interval):
            return {}
        task, cycle, *_ = self._algorithm.curriculum.exposure_at(finished - 1)
        is_last = finished == self._algorithm.curriculum.total_epochs
        seen = self._look(finished, task if ended else None, is_last)
        if seen.probe is not None:
            self._probes[task] = (cycle, seen.probe)
            self._note(0, task, seen.untrained)
        for each, found in seen.drift.items():
            self._note(finished, each, found)
        found = [*seen.plasticity, *self._gradients(learned)]
        self._note(finished, "", found)
        strips = self._name_strips(seen.strips, task if ended else None, is_last)
        self._strips |= strips
        self._write([task] if ended else [], strips)
        return _nested(seen.drift | {PLASTICITY: found}) | {
            "seconds": time.perf_counter() - began
        }

    def _look(self, finished: int, ended: str | None, is_last: bool) -> Seen:
        algorithm, config = self._algorithm, self._algorithm.config
        rows = (ended, algorithm.play_probe(ended, finished)) if ended else None
        known = {task: content for task, (_, content) in self._probes.items()}
        known.pop(ended, None)  # from an earlier cycle
        recent = algorithm.replay.recent.remote(
            SEQUENCES, min(LENGTH, config.replay_chunk_length)
        )
        found = algorithm.call_learners(
            partial(
                look,
                anatomy=config.anatomy(),
                recent=recent,
                probes=known,
                ended=rows,
                drawn=[*(known if is_last else ()), *([ended] if ended else ())],
            )
        )
        return next(seen for seen in found if seen is not None)

    def _note(self, epoch: int, task: str, found: list[Finding]) -> None:
        cycle = self._probes[task][0] if task else 0
        self._inside += [Inside(epoch, task, cycle, *finding) for finding in found]

    def _gradients(self, learned: dict[str, float]) -> list[Finding]:
        """The means over the epoch, as the learner told them."""
        names = self._algorithm.config.anatomy().gradients
        return [
            Finding(part, "gradient_norm", learned[name])
            for name, part in names.items()
            if name in learned
        ]

    def _note_memory(self, epoch: int, stats: dict[str, Any]) -> None:
        drawn = ray.get(self._algorithm.replay.drawn.remote())
        for buffer in BUFFERS:
            rows = [(t, "chunks", n) for t, n in stats[f"{buffer}_tasks"].items()]
            if stats[f"{buffer}_chunks"]:
                ages = stats[f"{buffer}_ages"].items()
                rows += [("", f"age_{name}", age) for name, age in ages]
            if drawn:
                share = drawn.get(buffer, 0) / sum(drawn.values())
                rows.append(("", "minibatches", share))
            self._memory += [Memory(epoch, buffer, *row) for row in rows]

    def _name_strips(
        self, strips: dict[str, bytes], ended: str | None, is_last: bool
    ) -> dict[str, bytes]:
        """Returns the strips by the names of their files."""
        tasks = self._algorithm.curriculum.task_names
        named = {}
        for task, picture in strips.items():
            if task == ended:
                named[strip_file(tasks, task, AT_ITS_END)] = picture
            if is_last:
                named[strip_file(tasks, task, AT_THE_END)] = picture
        return named

    # Files and checkpoints.

    def _write(self, probes: Iterable[str], strips: dict[str, bytes]) -> None:
        directory = self._algorithm.run_directory
        if directory is None:
            return
        tasks = self._algorithm.curriculum.task_names
        for task in probes:
            directory.write(probe_file(tasks, task), self._probes[task][1])
        for name, picture in strips.items():
            directory.write(name, picture)
        directory.write(INSIDE_CSV, to_csv(Inside, self._inside))
        directory.write(MEMORY_CSV, to_csv(Memory, self._memory))

    def get_state(self) -> dict[str, Any]:
        """Returns all that was noted, in plain types."""
        return {
            "inside": [tuple(row) for row in self._inside],
            "memory": [tuple(row) for row in self._memory],
            "probes": self._probes,
            "strips": self._strips,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from what `get_state` returned, and writes it out again."""
        self._inside = [Inside(*row) for row in state["inside"]]
        self._memory = [Memory(*row) for row in state["memory"]]
        self._probes = dict(state["probes"])
        self._strips = dict(state["strips"])
        if self._inside:
            self._write(self._probes, self._strips)


def _nested(found: dict[str, list[Finding]]) -> dict[str, Any]:
    """Returns findings as `{task: {part: {measure: value}}}`, without NaN."""
    nested: dict[str, Any] = {}
    for task, findings in found.items():
        for part, measure, value in findings:
            if not math.isnan(value):
                nested.setdefault(task, {}).setdefault(part, {})[measure] = value
    return nested
