"""How sure a comparison of methods is: intervals, pairs of seeds, profiles."""

from __future__ import annotations

import itertools

import numpy as np

from rllib_arrow.metrics.statistics import (
    bootstrap_iqm,
    paired_difference,
    performance_profile,
    probability_of_improvement,
)
from rllib_arrow.runs.results import Comparison
from rllib_arrow.seeding import derive_rng

# The metrics that are compared seed by seed.
PAIRED_METRICS = ("retention", "F", "ACC", "min_ACC", "WC_ACC", "FT_area", "zero_shot")
# With more methods than this, only pairs with the reference method are shown.
MAX_PAIRED = 4
_PROFILE_POINTS = 81


def add_statistics(comparison: Comparison) -> None:
    """Adds interquartile means, chances to beat, profiles and paired differences.

    All resampling has fixed seeds, so that equal runs give equal reports.
    """
    curves = [c for r in comparison.methods.values() for c in r.curves]
    # A sweep over tasks compares what all have met.
    tasks = [t for t in curves[0].tasks if all(t in c.columns for c in curves)]
    if not tasks:
        comparison.notes.append("No task is common to all, so there are no statistics.")
        return
    place = (comparison.suite, comparison.setting)
    scores = {m: r.final_scores(tasks) for m, r in comparison.methods.items()}
    top = max(1.0, *(float(np.quantile(s, 0.95)) for s in scores.values()))
    grid = np.linspace(0, top, _PROFILE_POINTS)
    for method, final in scores.items():
        comparison.iqm[method] = bootstrap_iqm(
            final, derive_rng(0, "iqm", *place, method)
        )
        rng = derive_rng(0, "profile", *place, method)
        comparison.profiles[method] = performance_profile(final, grid, rng)
    for x, y in _pairs(comparison):
        rng = derive_rng(0, "improvement", *place, x, y)
        interval = probability_of_improvement(scores[x], scores[y], rng)
        comparison.improvement[x, y] = interval
    _add_differences(comparison, place)


def _pairs(comparison: Comparison) -> list[tuple[str, str]]:
    names = list(comparison.methods)
    if len(names) <= MAX_PAIRED:
        return list(itertools.combinations(names, 2))
    reference = comparison.reference
    return [(reference, name) for name in names if name != reference]


def _add_differences(comparison: Comparison, place: tuple[str, str]) -> None:
    """The reference method's values minus each other's, by seed."""
    reference = comparison.methods[comparison.reference]
    for method, result in comparison.methods.items():
        if result is reference:
            continue
        found = {}
        for metric in PAIRED_METRICS:
            rng = derive_rng(0, "paired", *place, method, metric)
            pair = reference.of_seeds(metric), result.of_seeds(metric)
            found[metric] = paired_difference(*pair, rng)
        known = {metric: paired for metric, paired in found.items() if paired}
        if known:
            comparison.differences[method] = known
