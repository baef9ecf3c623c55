"""Learners in step: how many there are, what they agree on, their mean gradients."""

from __future__ import annotations

import torch
from torch import Tensor
from torch import distributed as dist


def world_size() -> int:
    """Returns how many learners there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Returns this learner's number among them."""
    return dist.get_rank() if dist.is_initialized() else 0


def average(gradients: list[Tensor]) -> None:
    """Averages gradients over all learners in one message."""
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= world_size()
    parts = flat.split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view(gradient.shape))


def all_agree(value: bool, device: torch.device) -> bool:
    """Returns whether the value is true for every learner, each on its `device`."""
    if world_size() == 1:
        return value
    least = torch.tensor(int(value), device=device)  # NCCL takes no other
    dist.all_reduce(least, dist.ReduceOp.MIN)
    return bool(least)
