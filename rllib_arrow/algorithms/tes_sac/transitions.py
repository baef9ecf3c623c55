"""From rows as replay gives them to the transitions SAC learns from."""

from __future__ import annotations

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from torch import Tensor

from rllib_arrow.algorithms.tes_sac.rl_module import scale_images

WEIGHTS = "weights"


def to_transitions(
    rows: dict[str, np.ndarray], device: torch.device
) -> dict[str, Tensor]:
    """Turns pairs of neighbouring rows [B, 2, ...] into RLlib's columns [B, ...].

    The reward that arrived with the second row, and whether that row is terminal,
    belong to the action taken at the first. A pair whose second row starts an episode
    is no transition and gets weight 0; it follows either a terminal row or a
    truncation, so a truncated episode's last transition is one like any other.
    """

    def column(key: str, row: int) -> Tensor:
        return torch.tensor(rows[key][:, row], device=device)

    return {
        Columns.OBS: scale_images(column("obs", 0)),
        Columns.NEXT_OBS: scale_images(column("obs", 1)),
        Columns.ACTIONS: column("actions", 0),
        Columns.REWARDS: column("rewards", 1),
        Columns.TERMINATEDS: column("is_terminated", 1).float(),
        WEIGHTS: (~column("is_first", 1)).float(),
    }
