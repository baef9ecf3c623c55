"""How far a network's answers to the same questions have moved; rows come first."""

from __future__ import annotations

import numpy as np

TINY = 1e-12  # below this, a logarithm's argument counts as this


def linear_cka(then: np.ndarray, now: np.ndarray) -> float:
    """Returns how alike two sets of features [N, D] and [N, E] are, in [0, 1].

    Linear centred kernel alignment: |X'Y|^2 / (|X'X| |Y'Y|) of the centred features, in
    Frobenius norms. Turning, mirroring and scaling the features changes nothing. NaN
    where the features of one side are the same in every row.
    """
    x, y = (_centred(features) for features in (then, now))
    if len(x) < max(x.shape[1], y.shape[1]):
        # The same number from the N x N products, which are the smaller ones here.
        k, l = x @ x.T, y @ y.T  # noqa: E741
        top, bottom = (k * l).sum(), np.linalg.norm(k) * np.linalg.norm(l)
    else:
        top = (np.square(x.T @ y)).sum()
        bottom = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    return float(top / bottom) if bottom > 0 else float("nan")


def _centred(features: np.ndarray) -> np.ndarray:
    flat = features.reshape(len(features), -1).astype(np.float64)
    return flat - flat.mean(0)


def mean_kl(then: np.ndarray, now: np.ndarray) -> float:
    """Returns the mean over rows of KL(then || now) in nats.

    Probabilities [N, classes], or [N, groups, classes], whose groups are summed.
    """
    p, q = then.astype(np.float64), now.astype(np.float64)
    terms = p * (np.log(np.maximum(p, TINY)) - np.log(np.maximum(q, TINY)))
    return float(terms.reshape(len(p), -1).sum(1).mean())


def agreement(then: np.ndarray, now: np.ndarray) -> float:
    """Returns the share of rows in which the likeliest class is the same."""
    return float((then.argmax(-1) == now.argmax(-1)).mean())


def value_drift(then: np.ndarray, now: np.ndarray) -> float:
    """Returns the mean distance of values [N, ...] over the spread of the old ones.

    The spread is their standard deviation; NaN where they were all the same.
    """
    spread = then.astype(np.float64).std()
    distance = np.abs(now.astype(np.float64) - then).mean()
    return float(distance / spread) if spread > 0 else float("nan")


def mean_error(predicted: np.ndarray, truth: np.ndarray) -> float:
    """Returns the mean absolute error."""
    return float(np.abs(predicted.astype(np.float64) - truth).mean())


def binary_loss(probability: np.ndarray, truth: np.ndarray) -> float:
    """Returns the mean cross-entropy in nats of probabilities [N] with bools [N]."""
    p = probability.astype(np.float64)
    of_truth = np.where(truth, p, 1.0 - p)
    return float(-np.log(np.maximum(of_truth, TINY)).mean())


def forgotten_share(
    value: np.ndarray, own_end: np.ndarray, untrained: np.ndarray
) -> np.ndarray:
    """Returns how much of what training gave is gone: 0 for nothing, 1 for all.

    Takes numbers or arrays. All three are the same measure on the same rows: now, at
    the end of the task's own training, and of the networks before any training. NaN
    where training did not move the measure; below 0 where it is better now, above 1
    where worse than untrained.
    """
    lost, gained = np.subtract(value, own_end), np.subtract(untrained, own_end)
    moved = np.abs(gained) > TINY
    return np.where(moved, lost / np.where(moved, gained, 1.0), np.nan)
