"""A metric's number, and what a reader must know about it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Below this a denominator counts as zero; scores are of order one.
ZERO = 1e-9


class Value(NamedTuple):
    """A metric's number and what a reader must know about it."""

    value: float
    notes: tuple[str, ...] = ()


def undefined(reason: str) -> Value:
    """Returns no number, and why."""
    return Value(float("nan"), (reason,))


def mean_value(terms: list[float], notes: list[str]) -> Value:
    """Returns the mean of the defined terms; drops none without a note."""
    defined = [term for term in terms if np.isfinite(term)]
    if len(defined) < len(terms) and not any("left out" in note for note in notes):
        notes = [*notes, "a task is left out, the run has no evaluation that early"]
    value = float(np.mean(defined)) if defined else float("nan")
    return Value(value, tuple(dict.fromkeys(notes)))
