"""The rows of one epoch as they are played, and what is handed on of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS

from rllib_arrow.envs.base import Rows
from rllib_arrow.replay.chunk import Chunk, ChunkWithPolicy


class Stretch(NamedTuple):
    """Rows [begin, end) of one environment, all of one episode."""

    env: int
    begin: int
    end: int
    is_whole: bool  # or cut by the end of the epoch


class Recorder:
    """Rows of all environments, written in place and handed out per environment.

    Args:
        steps, envs: How many rows.
        shape: Of a frame.
        policy_units: Numbers to remember of the policy at each row, if any.
    """

    def __init__(
        self, steps: int, envs: int, shape: tuple[int, ...], policy_units: int = 0
    ):
        self.obs = np.empty((envs, steps, *shape), np.uint8)
        self.actions = np.empty((envs, steps), np.int64)
        self.rewards = np.empty((envs, steps), np.float32)
        self.is_first = np.empty((envs, steps), bool)
        self.is_terminated = np.empty((envs, steps), bool)
        self.policy = np.zeros((envs, steps, policy_units), np.float16)
        self._by_step = [field.swapaxes(0, 1) for field in self._fields()]

    def record(self, step: int, rows: Rows, actions: np.ndarray) -> None:
        """Writes the rows of one step and the actions taken at them."""
        values = (rows.obs, actions, rows.rewards, rows.is_first, rows.is_terminated)
        for field, value in zip(self._by_step, values, strict=True):
            field[step] = value

    def record_policy(
        self, step: int, policy_and_value: np.ndarray, is_chosen: np.ndarray
    ) -> None:
        """Writes the policy and value at one step's rows, where the policy chose."""
        self.policy[is_chosen, step] = policy_and_value[is_chosen]

    def chunks(self, reward_scale: float) -> list[Chunk | ChunkWithPolicy]:
        """Returns one stream per environment, in the form of a long chunk."""
        obs, actions, rewards, *flags = self._fields()
        fields = [obs, actions, rewards * np.float32(reward_scale), *flags]
        kind = ChunkWithPolicy if self.policy.size else Chunk
        fields += [self.policy] if self.policy.size else []
        return [kind(*(field[env] for field in fields)) for env in range(len(obs))]

    def _fields(self) -> tuple[np.ndarray, ...]:
        flags = (self.is_first, self.is_terminated)
        return (self.obs, self.actions, self.rewards, *flags)

    def stretches(self) -> Iterator[Stretch]:
        """Yields the episodes of each environment, the last of them cut short."""
        for env, first in enumerate(self.is_first):
            ends = [*np.flatnonzero(first).tolist(), len(first)]
            for begin, end in pairwise(ends):
                yield Stretch(env, begin, end, is_whole=end < len(first))

    def info(self, seconds: float) -> dict[str, Any]:
        """Returns returns of the episodes seen from start to end, and the speed."""
        whole = [stretch for stretch in self.stretches() if stretch.is_whole]
        rewards = (self.rewards[env, begin:end] for env, begin, end, _ in whole)
        return {
            "frames": self.rewards.size,
            "seconds": seconds,
            "episode_returns": [float(reward.sum()) for reward in rewards],
            "episode_lengths": [end - begin for _, begin, end, _ in whole],
        }

    def episode(
        self, stretch: Stretch, observation_space: gym.Space, action_space: gym.Space
    ) -> SingleAgentEpisode:
        """Returns a stretch in RLlib's form, with raw rewards."""
        env, begin, end, is_whole = stretch
        terminated = is_whole and bool(self.is_terminated[env, end - 1])
        return SingleAgentEpisode(
            observations=list(self.obs[env, begin:end]),
            observation_space=observation_space,
            actions=list(self.actions[env, begin : end - 1]),
            action_space=action_space,
            # A row's reward came with its observation: the first row has none.
            rewards=list(self.rewards[env, begin + 1 : end]),
            terminated=terminated,
            truncated=is_whole and not terminated,
            len_lookback_buffer=0,
        )


def summary_of(infos: list[dict[str, Any]], waited: float) -> dict[str, Any]:
    """Returns what the runners saw, at the places where RLlib users look for it.

    They may have played while nobody waited for them, for so many seconds.
    """
    returns = [r for info in infos for r in info["episode_returns"]]
    lengths = [n for info in infos for n in info["episode_lengths"]]
    frames = sum(info["frames"] for info in infos)
    seen = {"num_episodes": len(returns), "num_env_steps_sampled": frames}
    if returns:
        seen["episode_return_mean"] = float(np.mean(returns))
        seen["episode_return_max"] = float(np.max(returns))
        seen["episode_return_min"] = float(np.min(returns))
        seen["episode_len_mean"] = float(np.mean(lengths))
    return {
        ENV_RUNNER_RESULTS: seen,
        "frames_per_s": frames / max(waited, *(info["seconds"] for info in infos)),
        "collect_s": waited,
    }
