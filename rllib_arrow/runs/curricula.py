"""`curriculum.json`: what it says, how it is written and how it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rllib_arrow.curriculum.exposure import (
    MAX_EXPOSURES,
    Exposure,
    most_cycles,
    plan_exposures,
)
from rllib_arrow.envs.references import Reference
from rllib_arrow.envs.suites import SUITES, reference_of, reference_scores
from rllib_arrow.errors import UserError
from rllib_arrow.files import check_regular
from rllib_arrow.settings import brief, is_number

if TYPE_CHECKING:
    from rllib_arrow.curriculum.schedule import Curriculum

CURRICULUM_JSON = "curriculum.json"
MAX_BYTES = 16 * 2**20


class Plan(NamedTuple):
    """The order of training; `exposures` are what was really trained, if recorded."""

    tasks: tuple[str, ...]
    epochs_per_task: tuple[int, ...]
    cycles: int
    exposures: tuple[Exposure, ...]
    references: dict[str, Reference]  # that are not shipped with the suite


def to_json(
    curriculum: Curriculum,
    frames_per_epoch: int,
    exposures: Sequence[Exposure] | None = None,
) -> str:
    """Returns the text of `curriculum.json`.

    Tasks and epochs stand in the order of training; the epochs are a single number
    where all tasks have the same. `exposures` are given where a rule switched tasks;
    `references` are there for tasks whose reference scores the suite does not ship.
    """
    epochs = list(curriculum.epochs_of_tasks)
    content: dict[str, Any] = {
        "suite": curriculum.suite,
        "setting": curriculum.setting,
        "order": curriculum.order,
        "tasks": list(curriculum.task_names),
        "epochs_per_task": epochs[0] if len(set(epochs)) == 1 else epochs,
        "cycles": curriculum.cycles,
        "frames_per_epoch": frames_per_epoch,
    }
    if references := _own_references(curriculum):
        content["references"] = references
    if exposures is not None:
        content["exposures"] = [exposure._asdict() for exposure in exposures]
    return json.dumps(content, indent=2) + "\n"


def _own_references(curriculum: Curriculum) -> dict[str, dict[str, float]]:
    suite = curriculum.suite
    shipped = reference_scores(suite) if suite in SUITES else {}
    found = {}
    for name in curriculum.task_names:
        reference = reference_of(suite, curriculum.spec(name))
        if reference and reference.arrow is not None and reference != shipped.get(name):
            found[name] = {"low": reference.random, "high": reference.arrow}
    return found


def read_plan(path: Path) -> Plan | None:
    """Reads `curriculum.json`, checked; None if there is no such file."""
    try:
        check_regular(path, MAX_BYTES)
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not readable JSON ({error}).") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be a JSON object, not {brief(content)}.")
    return _Content(path, content).plan()


class _Content:
    """The parsed file, read with checks that name the key of a fault."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        self._path, self._content = path, content

    def plan(self) -> Plan:
        tasks, cycles = self._tasks(), self._content.get("cycles")
        epochs = self._epochs(len(tasks))
        self._check("cycles", _is_count(cycles), "a whole number above 0")
        allowed = f"at most {most_cycles(len(tasks))}"
        self._check("cycles", len(tasks) * cycles <= MAX_EXPOSURES, allowed)
        if "exposures" in self._content:
            exposures = self._exposures(tasks)
        else:
            exposures = plan_exposures(tasks, epochs, cycles)
        return Plan(tasks, epochs, cycles, exposures, self._references(tasks))

    def _check(self, key: str, good: bool, allowed: str) -> None:
        if not good:
            value = brief(self._content.get(key))
            raise UserError(f"{self._path}: {key} ({value}) must be {allowed}.")

    def _tasks(self) -> tuple[str, ...]:
        tasks = self._content.get("tasks")
        good = (
            isinstance(tasks, list)
            and 0 < len(tasks) <= MAX_EXPOSURES
            and all(isinstance(name, str) and name for name in tasks)
            and len(set(tasks)) == len(tasks)
        )
        self._check("tasks", good, "a list of distinct task names")
        return tuple(tasks)

    def _epochs(self, tasks: int) -> tuple[int, ...]:
        epochs = self._content.get("epochs_per_task")
        if _is_count(epochs):
            return (epochs,) * tasks
        good = isinstance(epochs, list) and len(epochs) == tasks
        self._check(
            "epochs_per_task",
            good and all(map(_is_count, epochs)),
            f"a whole number above 0, or a list of {tasks}, one per task",
        )
        return tuple(epochs)

    def _exposures(self, tasks: tuple[str, ...]) -> tuple[Exposure, ...]:
        listed = self._content["exposures"]
        allowed = (
            "a list of {task, cycle, start, end}, each task one of tasks and each "
            "start the end before it"
        )
        good = isinstance(listed, list) and 0 < len(listed) <= MAX_EXPOSURES
        self._check("exposures", good, allowed)
        exposures, start = [], 0
        for item in listed:
            good = isinstance(item, dict) and set(item) == set(Exposure._fields)
            self._check("exposures", good, allowed)
            exposure = Exposure(**item)
            good = (
                exposure.task in tasks
                and _is_count(exposure.cycle)
                and exposure.start == start
                and _is_count(exposure.end)
                and exposure.end > start
            )
            self._check("exposures", good, allowed)
            exposures.append(exposure)
            start = exposure.end
        return tuple(exposures)

    def _references(self, tasks: tuple[str, ...]) -> dict[str, Reference]:
        found = self._content.get("references", {})
        good = isinstance(found, dict) and all(
            task in tasks and _is_scale(scores) for task, scores in found.items()
        )
        allowed = "{task: {low, high}} with a task of tasks and low below high"
        self._check("references", good, allowed)
        return {t: Reference.given(s["low"], s["high"]) for t, s in found.items()}


def _is_scale(scores: Any) -> bool:
    return (
        isinstance(scores, dict)
        and set(scores) == {"low", "high"}
        and all(is_number(x) for x in scores.values())
        and scores["low"] < scores["high"]
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value < 10**15
