"""The CoinRun suite on Procgen's own vector environment."""

from __future__ import annotations

import contextlib
import io
import platform
import sys
from types import ModuleType

import numpy as np
from gymnasium.spaces import Discrete

from rllib_arrow.envs.base import (
    Rows,
    VectorTask,
    first_rows,
    image_space,
    native_seeds,
)
from rllib_arrow.envs.options import check_integer, check_known, require
from rllib_arrow.errors import UserError

# Each variant adds one change to those before it.
VARIANTS: dict[str, dict[str, bool]] = {"coinrun": {}}
VARIANTS["nb"] = {"use_backgrounds": False}
VARIANTS["nb_rt"] = {**VARIANTS["nb"], "restrict_themes": True}
VARIANTS["nb_rt_ga"] = {**VARIANTS["nb_rt"], "use_generated_assets": True}
VARIANTS["nb_rt_ga_ma"] = {**VARIANTS["nb_rt_ga"], "use_monochrome_assets": True}
VARIANTS["nb_rt_ga_ma_ca"] = {**VARIANTS["nb_rt_ga_ma"], "center_agent": False}

NO_OP = 4  # the action that presses no key
TIME_LIMIT = 1000  # Procgen's own, in steps


def import_procgen() -> ModuleType:
    """Imports Procgen; the error says whether it can be installed here at all."""
    python = sys.version_info[:2]
    here = (sys.platform, platform.machine())
    try:
        # Procgen imports the old gym, which prints a notice about its age.
        with contextlib.redirect_stderr(io.StringIO()):
            name = "procgen-mirror" if python >= (3, 11) else "procgen"
            return require("procgen", name, "coinrun")
    except UserError as error:
        # The same condition stands in setup.cfg.
        if here == ("linux", "x86_64") and python < (3, 13):
            raise
        raise UserError(
            "suite 'coinrun' needs Procgen, which is published for Linux on x86-64 "
            f"with Python 3.10 to 3.12, not for {here[0]} on {here[1]} with Python "
            f"{python[0]}.{python[1]}; use such a machine, or another suite"
        ) from error


class CoinRunTask(VectorTask):
    """One variant of CoinRun: 64x64 RGB, 15 actions, 10 for reaching the coin.

    Procgen goes from the last action of an episode straight to the first frame of
    the next and never shows the terminal frame. Here the last row repeats the frame
    before it, with the final reward; in the step after it that environment plays a
    no-op, whose frame is the first row of the new episode.
    """

    observation_space = image_space((64, 64, 3))
    action_space = Discrete(15)

    def __init__(
        self,
        variant: str,
        num_envs: int,
        *,
        distribution_mode: str = "hard",
        num_levels: int = 0,
        start_level: int = 0,
    ) -> None:
        check_known("distribution_mode", [distribution_mode], ["easy", "hard"])
        self._procgen = import_procgen()
        self.num_envs = num_envs
        self._env = None
        self._settings = {
            "distribution_mode": distribution_mode,
            "num_levels": check_integer("num_levels", num_levels, 0),
            "start_level": check_integer("start_level", start_level, 0),
            **VARIANTS[variant],
        }

    def reset(self, seed: int) -> Rows:
        # Procgen is seeded when it is made, which takes about 10 ms.
        self.close()
        self._env = self._procgen.ProcgenGym3Env(
            num=self.num_envs,
            env_name="coinrun",
            rand_seed=native_seeds(seed, 1)[0],
            **self._settings,
        )
        # A new gym3 environment already stands at its first frame.
        _, obs, _ = self._env.observe()
        rows = first_rows(obs["rgb"])
        self._frames, self._ended = rows.obs, rows.is_last
        self._age = np.zeros(self.num_envs, np.int64)
        return rows

    def step(self, actions: np.ndarray) -> Rows:
        is_first = self._ended
        self._env.act(np.where(is_first, NO_OP, actions))
        rewards, obs, is_new_level = self._env.observe()
        self._age += 1
        # Should the no-op itself end a level, the row is the first of the next one.
        ended = is_new_level & ~is_first
        # At the limit a level that paid nothing ran out of time; dying in that very
        # step looks the same and is taken for it.
        truncated = ended & (self._age >= TIME_LIMIT) & (rewards == 0)
        frames = obs["rgb"]
        frames[ended] = self._frames[ended]
        self._age[is_new_level] = 0
        self._frames, self._ended = frames, ended
        rewards[is_first] = 0
        return Rows(frames, rewards, is_first, ended & ~truncated, truncated)

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None
