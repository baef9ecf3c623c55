"""Which task is on at which epoch: a pure function, so nothing has to be stored."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

from rllib_arrow.curriculum.exposure import (
    MAX_EXPOSURES,
    Exposure,
    most_cycles,
    plan_exposures,
)
from rllib_arrow.envs.options import check_integer, check_known
from rllib_arrow.envs.suites import CUSTOM, Task, get_suite, is_of_suite, task_name
from rllib_arrow.errors import UserError
from rllib_arrow.settings import SettingError, naming

ORDERS = ("default", "reversed")
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Curriculum:
    """Tasks one after the other, each for its epochs; all of it `cycles` times.

    `tasks` and their epochs stand as the user wrote them; `order` says whether they are
    trained from first to last or from last to first. `epochs_per_task` is the length of
    one exposure, the same for all tasks or one number per task. `switch` is a rule that
    may end an exposure earlier, and `early_ends` are the epochs after which one did.
    """

    suite: str
    tasks: tuple[Task, ...]
    epochs_per_task: int | tuple[int, ...]
    order: str = "default"
    cycles: int = 1
    switch: Mapping[str, Any] | None = None
    early_ends: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.tasks:
            raise SettingError("curriculum.tasks", [], "must name at least one task")
        with naming("curriculum.tasks", list(self.tasks)):
            names = [task_name(self.suite, task) for task in self.tasks]
            for name, times in Counter(names).items():
                if times > 1:
                    raise UserError(f"task {name!r} occurs twice; repeat with cycles")
        with naming("curriculum.order", self.order):
            check_known("order", [self.order], ORDERS)
        check_integer("curriculum.cycles", self.cycles, 1)
        if self.cycles * len(self.tasks) > MAX_EXPOSURES:
            problem = f"must be at most {most_cycles(len(self.tasks))}"
            raise SettingError("curriculum.cycles", self.cycles, problem)
        uneven = not isinstance(self.epochs_per_task, int)
        for epochs in self.epochs_per_task if uneven else (self.epochs_per_task,):
            check_integer("curriculum.epochs_per_task", epochs, 1)
        if uneven and len(self.epochs_per_task) != len(self.tasks):
            given, count = list(self.epochs_per_task), len(self.tasks)
            problem = f"must be one integer, or one for each of the {count} tasks"
            raise SettingError("curriculum.epochs_per_task", given, problem)

    @classmethod
    def from_dict(cls, curriculum: Mapping[str, Any]) -> Curriculum:
        """Reads `{suite, tasks, order, epochs_per_task, cycles, switch}`, strictly."""
        if not isinstance(curriculum, Mapping):
            raise SettingError("curriculum", curriculum, "must be a mapping")
        keys = ("suite", "tasks", "order", "epochs_per_task", "cycles", "switch")
        for key, value in curriculum.items():
            with naming(f"curriculum.{key}", value):
                check_known("curriculum key", [key], keys)
        for key in ("suite", "epochs_per_task"):
            if key not in curriculum:
                raise SettingError("curriculum", curriculum, f"needs the key {key!r}")
        suite = curriculum["suite"]
        tasks = curriculum.get("tasks")
        with naming("curriculum.suite", suite):
            own = () if suite == CUSTOM else get_suite(suite).tasks
        epochs = curriculum["epochs_per_task"]
        return cls(
            suite=suite,
            tasks=_as_tuple("tasks", own if tasks is None else tasks),
            epochs_per_task=(
                _as_tuple("epochs_per_task", epochs)
                if isinstance(epochs, (list, tuple))
                else check_integer("curriculum.epochs_per_task", epochs, 1)
            ),
            order=curriculum.get("order", "default"),
            cycles=curriculum.get("cycles", 1),
            switch=_switch_rule(curriculum.get("switch")),
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns what `from_dict` reads, in types that YAML and JSON can hold."""
        uneven = not isinstance(self.epochs_per_task, int)
        switch = {"switch": dict(self.switch)} if self.switch else {}
        return {
            "suite": self.suite,
            "tasks": [dict(t) if isinstance(t, Mapping) else t for t in self.tasks],
            "order": self.order,
            "epochs_per_task": (
                list(self.epochs_per_task) if uneven else self.epochs_per_task
            ),
            "cycles": self.cycles,
            **switch,
        }

    @cached_property
    def task_names(self) -> tuple[str, ...]:
        """The names of the tasks, in the order of training."""
        return tuple(self._specs)

    @property
    def epochs_of_tasks(self) -> tuple[int, ...]:
        """The epochs of one exposure of each task, in the order of training."""
        if isinstance(self.epochs_per_task, int):
            return (self.epochs_per_task,) * len(self.tasks)
        return self._ordered(self.epochs_per_task)

    def spec(self, name: str) -> Task:
        """Returns the task of that name in the form that `make_task` takes."""
        check_known("task", [name], self.task_names)
        return self._specs[name]

    def is_custom(self, name: str) -> bool:
        """Whether the task of that name is not one of the suite's."""
        return not is_of_suite(self.suite, self.spec(name))

    @property
    def setting(self) -> str:
        """The kind of curriculum: single, default, reversed, two_cycle and so on."""
        if len(self.tasks) == 1:
            return "single"
        if self.cycles == 1:
            return self.order
        is_small = self.cycles <= len(_NUMBER_WORDS) + 1
        number = _NUMBER_WORDS[self.cycles - 2] if is_small else self.cycles
        suffix = "_reversed" if self.order == "reversed" else ""
        return f"{number}_cycle{suffix}"

    @cached_property
    def exposures(self) -> tuple[Exposure, ...]:
        """Every stretch of training, in order; those to come at their full length."""
        plan = plan_exposures(self.task_names, self.epochs_of_tasks, self.cycles)
        return reduce(_cut_short, self.early_ends, plan)

    def ended_early(self, epoch: int) -> Curriculum:
        """Returns the curriculum whose exposure under way ends after so many epochs."""
        return replace(self, early_ends=(*self.early_ends, epoch))

    @property
    def total_epochs(self) -> int:
        """How many epochs the whole curriculum takes."""
        return self.exposures[-1].end

    @property
    def boundaries(self) -> tuple[int, ...]:
        """The epochs with which a new exposure begins, the first exposure aside."""
        return tuple(exposure.start for exposure in self.exposures[1:])

    def exposure_at(self, epoch: int) -> Exposure:
        """Returns the exposure that the epoch, counted from 0, belongs to."""
        if not 0 <= epoch < self.total_epochs:
            last = self.total_epochs - 1
            raise ValueError(f"epoch ({epoch}) must be in 0..{last}: no task is on.")
        return self.exposures[bisect_right(self.boundaries, epoch)]

    def task_at(self, epoch: int) -> str:
        """Returns the task that is trained during the epoch, counted from 0."""
        return self.exposure_at(epoch).task

    @cached_property
    def _specs(self) -> dict[str, Task]:
        ordered = self._ordered(self.tasks)
        return {task_name(self.suite, task): task for task in ordered}

    def _ordered(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return values[::-1] if self.order == "reversed" else values


def _as_tuple(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise SettingError(f"curriculum.{name}", value, "must be a list")
    return tuple(value)


def _cut_short(exposures: tuple[Exposure, ...], end: int) -> tuple[Exposure, ...]:
    """Ends the exposure around the epoch `end`; those after it come the earlier."""
    cut, saved = [], 0
    for exposure in exposures:
        start = exposure.start - saved
        if exposure.start < end < exposure.end:
            saved = exposure.end - end
        cut.append(exposure._replace(start=start, end=exposure.end - saved))
    return tuple(cut)


def _switch_rule(switch: Any) -> dict[str, Any] | None:
    """Reads `{rule: plateau, patience, min_rise}`, strictly."""
    if switch is None:
        return None
    if not isinstance(switch, Mapping):
        raise SettingError("curriculum.switch", switch, "must be a mapping")
    rule = {"rule": "plateau", "patience": 3, "min_rise": 0.0}
    for key, value in switch.items():
        with naming(f"curriculum.switch.{key}", value):
            check_known("key", [key], rule)
    rule |= switch
    with naming("curriculum.switch.rule", rule["rule"]):
        check_known("rule", [rule["rule"]], ("plateau",))
    check_integer("curriculum.switch.patience", rule["patience"], 1)
    rise = rule["min_rise"]
    if isinstance(rise, bool) or not isinstance(rise, int | float) or not rise >= 0:
        problem = "must be a number >= 0"
        raise SettingError("curriculum.switch.min_rise", rise, problem)
    return rule
