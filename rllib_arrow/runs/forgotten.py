"""Which parts of the networks forgot, on one scale: 0 as it was, 1 as if untrained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from rllib_arrow.metrics.drift import forgotten_share
from rllib_arrow.metrics.statistics import (
    Interval,
    Paired,
    bootstrap_mean,
    paired_difference,
)
from rllib_arrow.seeding import derive_rng

# The measure that each part is judged by, in the order of the data's journey.
MAIN_MEASURE = {
    "encoder": "cka",
    "recurrence": "cka",
    "posterior": "kl",
    "prior": "kl",
    "reward": "loss",
    "continuation": "loss",
    "actor": "agreement",
    "critic_encoder": "cka",
    "critic": "drift",
    "agent": "agreement",
}
RUN = ["run", "method", "suite", "setting", "seed"]


class PartForgot(NamedTuple):
    """What one part of one method forgot by the end, over tasks and seeds."""

    method: str
    part: str
    seeds: dict[int, float]  # the mean over tasks, of each seed
    mean: Interval  # over seeds, with a 95 % bootstrap interval
    minus: dict[str, Paired]  # the first method's minus this one's, by seed


def forgotten(inside: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows on tasks with `forgotten` in the place of `value`.

    Takes `load_runs(...).inside`. One row per run, task, cycle, part, measure and look
    since the end of the task's training, that end itself (0) included.
    """
    on_tasks = inside[inside.task != ""]
    keys = [*RUN, "task", "cycle", "part", "measure"]
    group = on_tasks.groupby(keys, sort=False).ngroup()
    rows = on_tasks.assign(group=group).sort_values(["group", "epoch"], kind="stable")
    before, trained = rows[rows.epoch == 0], rows[rows.epoch > 0]
    trained = trained[trained.group.isin(before.group)]
    untrained = before.drop_duplicates("group", keep="last").set_index("group").value
    own_end = trained.drop_duplicates("group").set_index("group").value
    shares = forgotten_share(
        trained.value.to_numpy(),
        own_end.loc[trained.group].to_numpy(),
        untrained.loc[trained.group].to_numpy(),
    )
    found = trained.assign(forgotten=shares).drop(columns=["value", "group"])
    return found.reset_index(drop=True)


def main_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of the one measure that each part is judged by."""
    return rows[rows.part.map(MAIN_MEASURE) == rows.measure]


def by_seed(shares: pd.DataFrame) -> pd.DataFrame:
    """Returns what each part of each run forgot by its last look.

    The mean over the tasks whose training ended before that: those trained to the end
    could not forget.
    """
    shares = main_rows(shares).dropna(subset="forgotten")
    last = shares.groupby("run").epoch.transform("max")
    began = shares.groupby(["run", "task", "cycle"]).epoch.transform("min")
    at_end = shares[(shares.epoch == last) & (began < last)]
    mean = at_end.groupby([*RUN, "part"], sort=False).forgotten.mean()
    return mean.reset_index()


def parts_forgot(
    inside: pd.DataFrame, setting: str, methods: Sequence[str]
) -> list[PartForgot]:
    """Returns every part of every method, the differences being from the first one.

    For one suite and setting.
    """
    ends = by_seed(forgotten(inside))
    ends = ends[ends.setting == setting]
    found = []
    for part in MAIN_MEASURE:
        of_part = ends[ends.part == part]
        seeds = {
            method: _seeds(of_part[of_part.method == method]) for method in methods
        }
        for method, values in seeds.items():
            if not values:
                continue
            rng = derive_rng(0, "forgotten", setting, part, method)
            minus = {}
            first = methods[0]
            if method != first:
                paired = paired_difference(seeds[first], values, rng)
                minus = {first: paired} if paired else {}
            mean = bootstrap_mean(np.array(list(values.values())), rng)
            found.append(PartForgot(method, part, values, mean, minus))
    return found


def _seeds(rows: pd.DataFrame) -> dict[int, float]:
    return dict(zip(rows.seed.tolist(), rows.forgotten.tolist(), strict=True))
