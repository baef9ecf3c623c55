"""The Atari suite on ALE's own vector environment."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from rllib_arrow.envs.base import (
    Rows,
    VectorTask,
    first_rows,
    image_space,
    native_seeds,
)
from rllib_arrow.envs.options import (
    check_integer,
    check_probability,
    require,
    unknown,
)


def rom_of(env_id: Any) -> str | None:
    """Returns ALE's own name of a game known as `ALE/Pong-v5`; None for other ids."""
    game = re.fullmatch(r"ALE/(\w+)-v5", env_id) if isinstance(env_id, str) else None
    if game is None:
        return None
    roms = require("ale_py.roms", "ale-py", "atari").get_all_rom_ids()
    known = {rom.replace("_", ""): rom for rom in roms}
    name = game[1].lower()
    if name not in known:
        raise unknown("ALE game", name, known)
    return known[name]


class AtariTask(VectorTask):
    """One game: 64x64 RGB, 18 actions, raw rewards, a life lost ends nothing.

    Each action is held for `frame_skip` emulator frames, the last two are max-pooled.
    `max_num_frames_per_episode` counts emulator frames; reaching it truncates.
    """

    observation_space = image_space((64, 64, 3))
    action_space = Discrete(18)

    def __init__(
        self,
        game: str,
        num_envs: int,
        *,
        repeat_action_probability: float = 0.25,
        frame_skip: int = 4,
        noop_max: int = 30,
        max_num_frames_per_episode: int = 108_000,
    ) -> None:
        vector_env = require("ale_py.vector_env", "ale-py", "atari")
        self.num_envs = num_envs
        self._env = vector_env.AtariVectorEnv(
            game,
            num_envs,
            repeat_action_probability=check_probability(
                "repeat_action_probability", repeat_action_probability
            ),
            frameskip=check_integer("frame_skip", frame_skip, 1),
            noop_max=check_integer("noop_max", noop_max, 0),
            max_num_frames_per_episode=check_integer(
                "max_num_frames_per_episode", max_num_frames_per_episode, 1
            ),
            full_action_space=True,
            img_height=64,
            img_width=64,
            grayscale=False,
            stack_num=1,
            episodic_life=False,
            reward_clipping=False,
            use_fire_reset=False,
        )

    def reset(self, seed: int) -> Rows:
        # With a seed, ALE loads the ROM anew, so no emulator state survives.
        obs, _ = self._env.reset(seed=np.array(native_seeds(seed, self.num_envs)))
        rows = first_rows(obs[:, 0])
        self._ended = rows.is_last
        return rows

    def step(self, actions: np.ndarray) -> Rows:
        is_first = self._ended
        obs, rewards, terminated, truncated, _ = self._env.step(actions)
        self._ended = terminated | truncated
        rewards = rewards.astype(np.float32)
        return Rows(obs[:, 0], rewards, is_first, terminated, truncated)

    def close(self) -> None:
        self._env = None  # the emulators are freed with the last reference
