"""Whether a network can still learn: what its units do and where its weights are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

DORMANT = 0.025  # a unit this active, relative to its layer's mean, counts as dormant


def dormant_share(layers: Sequence[np.ndarray], threshold: float = DORMANT) -> float:
    """Returns the share of units, over all layers, that hardly ever do anything.

    Each layer is the mean absolute activation of its units, [units]; a unit is dormant
    if that is at most `threshold` times the mean of its layer. All units of a layer
    that is silent as a whole are dormant.
    """
    dormant = [layer <= threshold * layer.mean() for layer in layers]
    return float(np.concatenate(dormant).mean())


def effective_rank(features: np.ndarray) -> float:
    """Returns in how many directions features [N, D] spread: 1 to min(N, D).

    The exponential of the entropy of their singular values, taken as shares of their
    sum. 0 where all features are zero.
    """
    flat = features.reshape(len(features), -1).astype(np.float64)
    small = flat @ flat.T if len(flat) < flat.shape[1] else flat.T @ flat
    values = np.sqrt(np.clip(np.linalg.eigvalsh(small), 0.0, None))
    if not values.sum() > 0:
        return 0.0
    shares = values / values.sum()
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))


def norm(arrays: Sequence[np.ndarray]) -> float:
    """Returns the Euclidean norm of all numbers in the arrays."""
    return float(np.sqrt(sum(np.square(a, dtype=np.float64).sum() for a in arrays)))


def distance(arrays: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    """Returns the Euclidean distance of two lists of arrays of the same shapes."""
    pairs = zip(arrays, others, strict=True)
    return norm([a.astype(np.float64) - b for a, b in pairs])
