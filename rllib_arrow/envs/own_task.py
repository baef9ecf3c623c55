"""What a user writes to let an environment that no suite has join a curriculum."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from rllib_arrow.envs.options import check_finite, check_known, check_positive
from rllib_arrow.envs.references import Reference
from rllib_arrow.errors import UserError
from rllib_arrow.ray_private import registered_env

KEYS = ("id", "kwargs", "reward_scale", "name", "low", "high")


@dataclass(frozen=True)
class OwnTask:
    """An environment by its name or class, and how it is to be treated.

    An id is what RLlib's `.environment()` takes: a name that `tune.register_env` or
    Gymnasium knows, or a class. One of the form `module:Name-v0` makes Gymnasium import
    the module first, so that it is registered in every process that needs it.
    """

    id: str | type[gym.Env]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    reward_scale: float = 1.0
    name: str = ""  # the id, unless given
    low: float | None = None  # scores that a normalised scale calls 0 and 1
    high: float | None = None

    @classmethod
    def read(cls, entry: str | type[gym.Env] | Mapping[str, Any]) -> OwnTask:
        """Reads an id, or `{id, kwargs, reward_scale, name, low, high}`."""
        if not isinstance(entry, Mapping):
            entry = {"id": entry}
        check_known("task key", entry, KEYS)
        env_id = _checked_id(entry.get("id"))
        name = entry.get("name", env_id if isinstance(env_id, str) else env_id.__name__)
        if not isinstance(name, str) or not name:
            raise UserError(f"task name ({name!r}) must be a non-empty string.")
        kwargs = entry.get("kwargs", {})
        if not isinstance(kwargs, Mapping):
            raise UserError(f"task kwargs ({kwargs!r}) must be a mapping.")
        scale = check_positive("task reward_scale", entry.get("reward_scale", 1.0))
        return cls(env_id, dict(kwargs), scale, name, *_checked_scores(entry))

    @property
    def reference(self) -> Reference | None:
        """The user's own scores of random and of good play, if both were given."""
        return None if self.low is None else Reference.given(self.low, self.high)

    def make(self) -> gym.Env:
        """Makes one environment as RLlib would, with the kwargs as its `env_config`."""
        from ray.rllib.env.env_context import EnvContext  # reports go without Ray

        if isinstance(self.id, str):
            creator = registered_env(self.id)
            if creator is None:
                return gym.make(self.id, disable_env_checker=True, **self.kwargs)
        else:
            creator = self.id
        return creator(EnvContext(self.kwargs, worker_index=0))


def is_env_name(name: str) -> bool:
    """Whether a name is an environment's rather than a misspelt task of a suite.

    A versioned name is believed: the module that registers it may not be imported yet.
    """
    versioned = re.fullmatch(r"([\w.]+:)?(\S+/)?\S+-v\d+", name) is not None
    return versioned or name in gym.registry or registered_env(name) is not None


def _checked_id(env_id: Any) -> str | type[gym.Env]:
    is_class = isinstance(env_id, type) and issubclass(env_id, gym.Env)
    if not is_class and (not isinstance(env_id, str) or not env_id):
        raise UserError(
            f"task id ({env_id!r}) must be the name of an environment or a subclass of "
            "gymnasium.Env."
        )
    return env_id


def _checked_scores(entry: Mapping[str, Any]) -> tuple[float | None, float | None]:
    given = [key for key in ("low", "high") if entry.get(key) is not None]
    if not given:
        return None, None
    if len(given) == 1:
        raise UserError(f"task {given[0]} ({entry[given[0]]!r}) needs low and high.")
    low, high = (check_finite(f"task {key}", entry[key]) for key in given)
    if low >= high:
        raise UserError(f"task low ({low:g}) must be below task high ({high:g}).")
    return low, high
