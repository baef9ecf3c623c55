"""The suites: task names and orders, spaces, reward scales, and how to make a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gymnasium import Env
from gymnasium.spaces import Box, Discrete

from rllib_arrow.envs.atari import AtariTask, rom_of
from rllib_arrow.envs.base import VectorTask
from rllib_arrow.envs.coinrun import VARIANTS, CoinRunTask
from rllib_arrow.envs.gymnasium_task import GymnasiumTask
from rllib_arrow.envs.minatar import GAMES, MinAtarTask
from rllib_arrow.envs.minatar_variants import VARIANTS as LOOKS
from rllib_arrow.envs.minatar_variants import MinAtarVariantTask
from rllib_arrow.envs.minigrid import IDS as MAZES
from rllib_arrow.envs.minigrid import MiniGridTask
from rllib_arrow.envs.options import check_integer, check_known, unknown
from rllib_arrow.envs.own_task import OwnTask, is_env_name
from rllib_arrow.envs.references import Reference
from rllib_arrow.errors import UserError

CUSTOM = "custom"  # the suite of a curriculum made of a user's own tasks alone

# A task of the suite, any other environment, or either with settings (see OwnTask).
Task = str | type[Env] | Mapping[str, Any]


@dataclass(frozen=True)
class Suite:
    """Tasks that share one observation space and one action space."""

    name: str
    tasks: tuple[str, ...]  # in the default order
    vector_task: Callable[..., VectorTask]  # called with task, num_envs and options
    observation_space: Box
    action_space: Discrete
    labels: Mapping[str, str]
    reward_scales: Mapping[str, float] = field(default_factory=dict)
    measure: str = ""  # the task whose single-task score is 1 for all; else its own

    @property
    def num_actions(self) -> int:
        """How many actions every task of the suite has."""
        return int(self.action_space.n)

    @property
    def options(self) -> dict[str, Any]:
        """The settings of the suite's tasks, with their defaults."""
        parameters = inspect.signature(self.vector_task).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def reward_scale(self, task: str) -> float:
        """Returns what the task's rewards are multiplied with for training."""
        return self.reward_scales.get(task, 1.0)


def _flags_label(variant: str) -> str:
    """Writes `nb_rt` as the paper does: +NB+RT."""
    return "".join(f"+{flag.upper()}" for flag in variant.split("_"))


def _suite(name: str, vector_task: type[VectorTask], **fields: Any) -> Suite:
    return Suite(
        name,
        tuple(fields["labels"]),
        vector_task,
        vector_task.observation_space,
        vector_task.action_space,
        **fields,
    )


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        _suite(
            "atari",
            AtariTask,
            labels={
                "ms_pacman": "Ms. Pac-Man",
                "boxing": "Boxing",
                "crazy_climber": "Crazy Climber",
                "frostbite": "Frostbite",
                "seaquest": "Seaquest",
                "enduro": "Enduro",
            },
            reward_scales={
                "ms_pacman": 0.05,
                "boxing": 1.0,
                "crazy_climber": 0.001,
                "frostbite": 0.2,
                "seaquest": 0.5,
                "enduro": 0.5,
            },
        ),
        _suite(
            "coinrun",
            CoinRunTask,
            labels={
                task: "CoinRun" if task == "coinrun" else _flags_label(task)
                for task in VARIANTS
            },
        ),
        _suite(
            "minatar",
            MinAtarTask,
            labels={game: game.replace("_", " ").title() for game in GAMES},
        ),
        _suite(
            "minatar_variants",
            MinAtarVariantTask,
            labels={
                look: "Space Invaders" if look == "base" else f"+{look}"
                for look in LOOKS
            },
            measure="base",  # one game, of which the other looks are hard alone
        ),
        _suite(
            "minigrid",
            MiniGridTask,
            labels={maze: maze.title().replace("_", "") for maze in MAZES},
            # A maze pays once, at most 1: ten times that is what a game pays.
            reward_scales=dict.fromkeys(MAZES, 10.0),
        ),
    )
}


def get_suite(name: str) -> Suite:
    """Returns the suite of that name."""
    if not isinstance(name, str) or name not in SUITES:
        raise unknown("suite", name, [*SUITES, CUSTOM])
    return SUITES[name]


def is_of_suite(suite: str, task: Task) -> bool:
    """Whether a task is one of the suite's own."""
    return isinstance(task, str) and suite != CUSTOM and task in get_suite(suite).tasks


def task_name(suite: str, task: Task) -> str:
    """Returns the name a task goes by, after checking that the suite can have it."""
    if suite != CUSTOM:
        get_suite(suite)
    if not isinstance(task, (str, type, Mapping)):
        raise _unknown_task(suite, task)
    own = OwnTask.read(task)
    known = isinstance(own.id, type) or _native(suite, own.id) or is_env_name(own.id)
    if not known:
        raise _unknown_task(suite, own.id)
    return own.name


def is_task(suite: str, task: Any) -> bool:
    """Whether the suite can have the task."""
    try:
        return bool(task_name(suite, task))
    except UserError:
        return False


def make_task(suite: str, task: Task, num_envs: int, **options: Any) -> VectorTask:
    """Makes `num_envs` copies of a task: one of the suite's, or any other environment.

    Others are a task of another suite (`minigrid/lava_gap`), an ALE game
    (`ALE/Pong-v5`), which is played as the Atari suite's are, a name that Gymnasium or
    `tune.register_env` knows, a class, or a mapping with one of these as its `id`.
    They must have the suite's spaces (any image space, if the suite is `custom`). The
    options are settings of the suite's tasks, a mapping's `kwargs` of its own.
    """
    name = task_name(suite, task)
    check_integer("num_envs", num_envs, 1)
    known = {} if suite == CUSTOM else get_suite(suite).options
    check_known(f"option of suite {suite!r}", options, known)
    own = OwnTask.read(task)
    native = _native(suite, own.id)
    if native is None:
        made = GymnasiumTask(own, num_envs)
    else:
        shared = options if native[0] == suite else {}
        made = _make_native(*native, num_envs, {**shared, **own.kwargs})
        made.reward_scale *= own.reward_scale
    if suite != CUSTOM:
        _check_spaces(name, made, get_suite(suite))
    return made


def reference_scores(suite: str) -> dict[str, Reference]:
    """Returns, per task and in raw units, what random play and ARROW reach."""
    scale = get_suite(suite).reward_scale
    tasks = get_suite(suite).tasks
    return {task: Reference.measured(suite, task, scale(task)) for task in tasks}


def task_label(suite: str, name: str) -> str:
    """Returns a task's name for a reader; what no suite has keeps its name."""
    other, _, task = name.rpartition("/")
    labels = SUITES[other or suite].labels if (other or suite) in SUITES else {}
    return labels.get(task, name)


def reference_of(suite: str, task: Task) -> Reference | None:
    """Returns the scores that anchor a task's normalised scale, if there are any.

    Those that a user gave with the task come first.
    """
    if suite not in SUITES and suite != CUSTOM:
        return None
    own = OwnTask.read(task)
    native = _native(suite, own.id)
    shipped = reference_scores(native[0]).get(native[1]) if native else None
    return own.reference or shipped


def _native(suite: str, env_id: str | type) -> tuple[str, str] | None:
    """Returns the suite that plays an environment, and its name there, if one does."""
    if is_of_suite(suite, env_id):
        return suite, env_id
    if not isinstance(env_id, str):
        return None
    if rom := rom_of(env_id):
        return "atari", rom
    other, slash, task = env_id.partition("/")
    if not slash or other not in SUITES:
        return None
    check_known(f"task of suite {other!r}", [task], SUITES[other].tasks)
    return other, task


def _make_native(
    suite: str, task: str, num_envs: int, options: Mapping[str, Any]
) -> VectorTask:
    check_known(f"option of suite {suite!r}", options, get_suite(suite).options)
    made = get_suite(suite).vector_task(task, num_envs, **options)
    made.reward_scale = get_suite(suite).reward_scale(task)
    return made


def _unknown_task(suite: str, task: Any) -> UserError:
    if suite != CUSTOM:
        return unknown(f"task of suite {suite!r}", task, get_suite(suite).tasks)
    return UserError(
        f"unknown environment {task!r}: a task of suite 'custom' is a name that "
        "Gymnasium or tune.register_env knows, or {id: ...}."
    )


def _check_spaces(name: str, made: VectorTask, suite: Suite) -> None:
    ours = (made.observation_space, made.action_space)
    theirs = (suite.observation_space, suite.action_space)
    if ours != theirs:
        made.close()
        raise UserError(
            f"task {name!r} has the spaces {ours[0]} and {ours[1]}, but suite "
            f"{suite.name!r} has {theirs[0]} and {theirs[1]}; they must agree."
        )
