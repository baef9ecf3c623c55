"""A module that acts step by step, in vector environments."""

from __future__ import annotations

import numpy as np
import torch


class ActingPolicy:
    """A module together with its recurrent state and its own random stream."""

    def __init__(self, module, num_envs: int, seed: int):
        self.module = module
        self.state = module.initial_state(num_envs)
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, obs: np.ndarray, is_first: np.ndarray) -> np.ndarray:
        actions, self.state = self.module.act(
            torch.from_numpy(obs),
            self.state,
            torch.from_numpy(is_first),
            self.generator,
        )
        return actions.numpy()

    def policy_and_value(self) -> np.ndarray:
        """Returns those of the last actions; see the module's `policy_and_value`."""
        return self.module.policy_and_value(self.state).numpy()
