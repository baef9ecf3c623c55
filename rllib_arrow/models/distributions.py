"""Categorical and two-hot distributions as plain tensors.

Objects of torch.distributions cost more than the arithmetic of a small model, so
distributions are probabilities here, and a draw is a function of uniform noise that
the caller makes. A function of its arguments alone is also easy to test.
"""

from __future__ import annotations

import torch
from torch import Tensor

UNIMIX = 0.01
BINS = 255
SYMLOG_LIMIT = 20.0


def symlog(x: Tensor) -> Tensor:
    """Returns sign(x) log(1 + |x|)."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


def symexp(x: Tensor) -> Tensor:
    """Undoes symlog."""
    return torch.sign(x) * torch.expm1(torch.abs(x))


def unimix_probs(logits: Tensor) -> Tensor:
    """Returns softmax probabilities mixed with 1 % of the uniform distribution."""
    floor = UNIMIX / logits.shape[-1]
    return torch.softmax(logits.float(), dim=-1) * (1.0 - UNIMIX) + floor


def sample_index(probs: Tensor, uniform: Tensor) -> Tensor:
    """Draws class numbers by inverting the cumulative distribution.

    Args:
        probs: [..., classes].
        uniform: noise in [0, 1), [...]. One number per draw: noise per class
            (Gumbel) takes longer to make than everything else in a dream.

    Returns:
        int64 [...].
    """
    if torch.compiler.is_compiling():
        return _count_classes_below(probs.detach(), uniform)
    cumulative = probs.detach().cumsum(-1)
    reach = uniform.unsqueeze(-1) * cumulative[..., -1:]
    index = torch.searchsorted(cumulative, reach, right=True).squeeze(-1)
    # Noise that rounds up to the whole sum, and probabilities that are not numbers
    # (the losses will tell), would point beyond the last class.
    return index.clamp_(max=probs.shape[-1] - 1)


def _count_classes_below(probs: Tensor, uniform: Tensor) -> Tensor:
    """Draws as `sample_index` does, with operations that a compiler can join."""
    classes = probs.shape[-1]
    upto = torch.ones(classes, classes, dtype=probs.dtype, device=probs.device).triu()
    cumulative = probs @ upto
    reach = uniform.unsqueeze(-1) * cumulative[..., -1:]
    return (cumulative <= reach).sum(-1).clamp(max=classes - 1)


def one_hot(index: Tensor, probs: Tensor) -> Tensor:
    """Returns ones at the class numbers [...], zeros elsewhere, shaped as `probs`."""
    if torch.compiler.is_compiling():
        numbers = torch.arange(probs.shape[-1], device=probs.device)
        return (index.unsqueeze(-1) == numbers).to(probs.dtype)
    return torch.zeros_like(probs).scatter_(-1, index.unsqueeze(-1), 1.0)


class _StraightThrough(torch.autograd.Function):
    """One-hot draws whose gradient is passed on to the probabilities unchanged."""

    @staticmethod
    def forward(probs: Tensor, uniform: Tensor) -> Tensor:
        return one_hot(sample_index(probs, uniform), probs)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        pass

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def sample_one_hot(probs: Tensor, uniform: Tensor) -> Tensor:
    """Draws one-hot vectors [..., classes] as `sample_index` draws class numbers.

    The gradient is the identity on `probs` (straight-through).
    """
    return _StraightThrough.apply(probs, uniform)


def entropy(probs: Tensor) -> Tensor:
    """Returns the entropy in nats over the last axis."""
    return -(probs * probs.log()).sum(-1)


def kl_divergence(p: Tensor, q: Tensor) -> Tensor:
    """Returns KL(p || q) in nats over the last axis."""
    return (p * (p.log() - q.log())).sum(-1)


def two_hot_bins(device: torch.device | None = None) -> Tensor:
    """Returns the bin centres, evenly spaced in symlog space."""
    return torch.linspace(-SYMLOG_LIMIT, SYMLOG_LIMIT, BINS, device=device)


def two_hot_mean(logits: Tensor) -> Tensor:
    """Returns the value that two-hot logits [..., BINS] stand for, as [...]."""
    return symexp(two_hot_symlog(logits))


def two_hot_symlog(logits: Tensor) -> Tensor:
    """Returns the symlog of that value."""
    probs = torch.softmax(logits.float(), dim=-1)
    return probs @ two_hot_bins(logits.device)


def two_hot_targets(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the two bins around each value and their shares: int64, float [..., 2].

    The shares of a value are in proportion to its nearness in symlog space. Values
    beyond the last bins count as the last bins.
    """
    step = 2.0 * SYMLOG_LIMIT / (BINS - 1)
    position = (symlog(values) + SYMLOG_LIMIT) / step
    position = position.clamp(0.0, BINS - 1.0)
    # A value that is not a number has no bin; its share makes the loss NaN, as it must.
    lower = position.nan_to_num().floor().clamp(max=BINS - 2.0)
    upper_share = position - lower
    index = lower.long()
    return (
        torch.stack([index, index + 1], dim=-1),
        torch.stack([1.0 - upper_share, upper_share], dim=-1),
    )


def two_hot_loss(logits: Tensor, values: Tensor) -> Tensor:
    """Returns the cross-entropy of logits [..., BINS] with values [...]."""
    index, shares = two_hot_targets(values)
    log_probs = torch.log_softmax(logits.float(), -1)
    return -(log_probs.gather(-1, index) * shares).sum(-1)
