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


def average(tensors: list[Tensor], count: Tensor | None = None) -> None:
    """Averages tensors over all learners, in place and in one message.

    With a count (of transitions), each learner has that much weight: the mean is then
    the one of a single learner with everybody's data.
    """
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    if count is None:
        dist.all_reduce(flat)
        flat /= world_size()
    else:
        flat = torch.cat([flat * count, count.view(1)])
        dist.all_reduce(flat)
        flat = flat[:-1] / flat[-1].clamp(min=1.0)
    parts = flat.split([tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.copy_(part.view(tensor.shape))


def all_agree(value: bool, device: torch.device) -> bool:
    """Returns whether the value is true for every learner, each on its `device`."""
    if world_size() == 1:
        return value
    least = torch.tensor(int(value), device=device)  # NCCL takes no other
    dist.all_reduce(least, dist.ReduceOp.MIN)
    return bool(least)
