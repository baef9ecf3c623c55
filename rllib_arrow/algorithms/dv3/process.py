"""What a learner's process needs: its peers, and its memory."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor
from torch import distributed as dist

# The numbers of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Keeps large blocks in the process when they are freed, where glibc allows it.

    An update frees and asks again for the same few hundred megabytes. Handing them
    back to the system each time costs a tenth of the update in page faults.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


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
