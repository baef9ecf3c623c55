"""The suites: task names and orders, spaces, reward scales, and how to make a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gymnasium.spaces import Box, Discrete

from rllib_arrow.envs.atari import AtariTask
from rllib_arrow.envs.base import VectorTask
from rllib_arrow.envs.coinrun import VARIANTS, CoinRunTask
from rllib_arrow.envs.gymnasium_task import GymnasiumTask, OwnTask
from rllib_arrow.envs.minatar import MinAtarTask
from rllib_arrow.envs.minatar_variants import MinAtarVariantTask
from rllib_arrow.envs.options import check_integer, check_known, unknown
from rllib_arrow.envs.references import PAPER, PAPER_SOURCES, RANDOM, Reference
from rllib_arrow.errors import UserError

CUSTOM = "custom"  # the suite of a curriculum made of a user's own tasks alone


@dataclass(frozen=True)
class Suite:
    """Tasks that share one observation space and one action space."""

    name: str
    tasks: tuple[str, ...]  # in the default order
    vector_task: Callable[..., VectorTask]  # called with task, num_envs and options
    observation_space: Box
    action_space: Discrete
    evaluation_episodes: int
    labels: Mapping[str, str]
    reward_scales: Mapping[str, float] = field(default_factory=dict)

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of a frame."""
        return self.observation_space.shape

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
            evaluation_episodes=16,
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
            evaluation_episodes=256,
            labels={
                task: "CoinRun" if task == "coinrun" else _flags_label(task)
                for task in VARIANTS
            },
        ),
        _suite(
            "minatar",
            MinAtarTask,
            evaluation_episodes=32,
            labels={
                "breakout": "Breakout",
                "asterix": "Asterix",
                "space_invaders": "Space Invaders",
                "freeway": "Freeway",
                "seaquest": "Seaquest",
            },
        ),
        _suite(
            "minatar_variants",
            MinAtarVariantTask,
            evaluation_episodes=64,
            labels={
                "base": "Space Invaders",
                "palette": "+palette",
                "background": "+background",
                "mirrored": "+mirrored",
                "monochrome": "+monochrome",
                "bullets": "+bullets",
            },
        ),
    )
}


def get_suite(name: str) -> Suite:
    """Returns the suite of that name."""
    if not isinstance(name, str) or name not in SUITES:
        raise unknown("suite", name, [*SUITES, CUSTOM])
    return SUITES[name]


def task_name(suite: str, task: str | Mapping[str, Any]) -> str:
    """Returns the name a task goes by, after checking that the suite can have it."""
    if isinstance(task, Mapping):
        if suite != CUSTOM:
            get_suite(suite)
        return OwnTask.from_dict(task).name
    if suite == CUSTOM:
        raise UserError(f"a task of suite 'custom' must be {{id: ...}}, not {task!r}.")
    check_known(f"task of suite {suite!r}", [task], get_suite(suite).tasks)
    return task


def make_task(
    suite: str, task: str | Mapping[str, Any], num_envs: int, **options: Any
) -> VectorTask:
    """Makes `num_envs` copies of a task: one of the suite's, or a user's own.

    A mapping `{id, kwargs, reward_scale, name}` is a user's own Gymnasium task. It has
    the suite's spaces (any image space, if the suite is `custom`); the options are
    settings of the suite's tasks and leave it alone.
    """
    name = task_name(suite, task)
    check_integer("num_envs", num_envs, 1)
    known = {} if suite == CUSTOM else get_suite(suite).options
    check_known(f"option of suite {suite!r}", options, known)
    if isinstance(task, Mapping):
        own = GymnasiumTask(OwnTask.from_dict(task), num_envs)
        if suite != CUSTOM:
            _check_spaces(name, own, get_suite(suite))
        return own
    made = get_suite(suite).vector_task(task, num_envs, **options)
    made.reward_scale = get_suite(suite).reward_scale(task)
    return made


def reference_scores(suite: str) -> dict[str, Reference]:
    """Returns, per task and in raw units, what random play and ARROW reach."""
    scale = get_suite(suite).reward_scale
    references = {}
    for task in get_suite(suite).tasks:
        random, std, episodes = RANDOM[suite][task]
        scaled_random, arrow = PAPER.get(suite, {}).get(task, (None, None))
        references[task] = Reference(
            random=random,
            random_std=std,
            random_episodes=episodes,
            paper_random=scaled_random and scaled_random / scale(task),
            arrow=arrow,
            paper_source=PAPER_SOURCES.get(suite),
        )
    return references


def _check_spaces(name: str, made: VectorTask, suite: Suite) -> None:
    ours = (made.observation_space, made.action_space)
    theirs = (suite.observation_space, suite.action_space)
    if ours != theirs:
        made.close()
        raise UserError(
            f"task {name!r} has the spaces {ours[0]} and {ours[1]}, but suite "
            f"{suite.name!r} has {theirs[0]} and {theirs[1]}; they must agree."
        )
