"""Anchors: weights are drawn back to where they were, or to where they began.

- Online EWC (Schwarz et al. 2018, "Progress & Compress"; Kirkpatrick et al. 2017): each
  weight is pulled to a running mean of itself, the more the larger its Fisher
  information, a decayed mean of its squared gradients. No task is named: mean and
  Fisher forget slowly, over `ewc_updates`.
- L2 towards the initial weights (Kumar et al. 2023, "Maintaining Plasticity in
  Continual Learning via Regenerative Regularization"). They come from the run's seed,
  and so are never saved.

Both pulls are taken after Adam's step and apart from it, as AdamW takes weight decay:
how strong they are does not depend on the size of a loss.
"""

from __future__ import annotations

import torch
from torch import Tensor

MEAN, FISHER = "ewc_mean", "ewc_fisher"  # kept with Adam's moments, saved with them


@torch.no_grad()
def pull_to_mean(optimizer: torch.optim.Adam, scale: float, updates: int) -> None:
    """Moves weights towards their running mean, and the mean towards them.

    Args:
        optimizer: Has just taken a step, with the gradients that are still there.
        scale: Share of the distance that a weight of mean Fisher information moves.
        updates: Over so many the mean and the Fisher information reach back.
    """
    params = [param for group in optimizer.param_groups for param in group["params"]]
    states = [optimizer.state[param] for param in params]
    for param, state in zip(params, states, strict=True):
        if MEAN not in state:
            state[MEAN] = param.detach().clone()
            state[FISHER] = param.grad.square()
        state[FISHER].lerp_(param.grad.square(), 1.0 / updates)
    total = torch.stack([state[FISHER].sum() for state in states]).sum()
    mean_fisher = total / sum(param.numel() for param in params)
    rate = scale / mean_fisher.clamp(min=torch.finfo(torch.float32).tiny)
    for param, state in zip(params, states, strict=True):
        param.lerp_(state[MEAN], (state[FISHER] * rate).clamp(max=1.0))
        state[MEAN].lerp_(param, 1.0 / updates)


@torch.no_grad()
def pull_to_initial(
    optimizer: torch.optim.Adam, initial: dict[Tensor, Tensor], scale: float
) -> None:
    """Moves weights towards `initial` by `scale` times the learning rate."""
    for group in optimizer.param_groups:
        for param in group["params"]:
            param.lerp_(initial[param], group["lr"] * scale)
