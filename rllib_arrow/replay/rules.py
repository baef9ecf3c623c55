"""The named parts that a replay's settings choose from."""

from __future__ import annotations

from typing import Any

from rllib_arrow.errors import UserError
from rllib_arrow.replay.buffer import Buffer
from rllib_arrow.replay.local_forgetting import LocalForgetting
from rllib_arrow.replay.retention import Fifo, Reservoir, ltdm_capacity
from rllib_arrow.replay.sampling import Curious, Uniform
from rllib_arrow.replay.shares import (
    AfterChange,
    Balanced,
    Constant,
    OnceAfterChange,
    Share,
)
from rllib_arrow.replay.store import ChunkStore
from rllib_arrow.seeding import derive_rng

RETENTION = {
    "fifo": lambda capacity, seed: Fifo(capacity),
    "local_forgetting": LocalForgetting,
}
SAMPLING = {"uniform": Uniform, "curious": Curious}
SHARES = {"constant": Constant, "after_change": AfterChange, "balanced": Balanced}
EXPLORATION = {"first_epoch": Constant, "after_change": OnceAfterChange}

# Which part each setting chooses, and the paper's choices. The long-term buffer is
# always a uniformly sampled reservoir: else it would not match the distribution.
RULES = {
    "fifo_retention": RETENTION,
    "fifo_sampling": SAMPLING,
    "ltdm_probability_rule": SHARES,
    "ltdm_fraction_rule": SHARES,
    "exploration_rule": EXPLORATION,
}
DEFAULTS: dict[str, Any] = {
    "fifo_retention": "fifo",  # which chunks the FIFO keeps
    "fifo_sampling": "uniform",  # which of them a minibatch takes
    "ltdm_probability_rule": "constant",  # how `ltdm_probability` moves
    "ltdm_fraction_rule": "constant",  # how `ltdm_fraction` moves
    "ltdm_bounds": [0.25, 0.75],  # between which the two move, if they do
    "exploration_rule": "first_epoch",  # when to play at random after epoch 0
}


def uses_losses(settings: dict[str, Any]) -> bool:
    """Returns whether any part wants to know the losses that learners saw."""
    keys = [key for key in RULES if key != "fifo_retention"]
    return any(settings.get(key, DEFAULTS[key]) != DEFAULTS[key] for key in keys)


def make_buffers(settings: dict[str, Any], store: ChunkStore) -> dict[str, Buffer]:
    """Returns the empty buffers "fifo" and "ltdm" over one store."""
    capacity, seed = settings["capacity_chunks"], settings["seed"]
    long_term = ltdm_capacity(capacity, settings["ltdm_fraction"])
    # A long-term buffer that may change its size takes its room as it fills.
    is_fixed = settings["ltdm_fraction_rule"] == "constant"
    newest = RETENTION[settings["fifo_retention"]](
        capacity - long_term if is_fixed else capacity, seed
    )
    # Keys have a stream of their own: what stays does not depend on how often somebody
    # has sampled.
    reservoir = Reservoir(long_term, derive_rng(seed, "replay", "keys"))
    return {
        "fifo": Buffer(store, newest, SAMPLING[settings["fifo_sampling"]]()),
        "ltdm": Buffer(store, reservoir, Uniform()),
    }


def make_shares(settings: dict[str, Any]) -> dict[str, Share]:
    """Returns the rules for `ltdm_probability`, `ltdm_fraction` and `exploration`."""
    shares = {
        key: SHARES[settings[f"{key}_rule"]](settings[key], settings["ltdm_bounds"])
        for key in ("ltdm_probability", "ltdm_fraction")
    }
    explores = EXPLORATION[settings["exploration_rule"]]
    return shares | {"exploration": explores(0.0, (0.0, 1.0))}


def check_settings(settings: dict[str, Any]) -> None:
    """Raises a UserError that names the first setting no replay can have."""
    for key in ("capacity_chunks", "chunk_length", "num_threads"):
        _require(settings, key, settings[key] >= 1, "at least 1")
    for key in ("ltdm_fraction", "ltdm_probability"):
        _require(settings, key, 0 <= settings[key] <= 1, "in [0, 1]")
    limit = settings["max_bytes"]
    _require(settings, "max_bytes", limit is None or limit >= 1, "positive")
    for key, parts in RULES.items():
        _require(settings, key, settings[key] in parts, f"one of {', '.join(parts)}")
    bounds = list(settings["ltdm_bounds"])
    are_bounds = len(bounds) == 2 and 0 < bounds[0] <= bounds[1] < 1
    allowed = "two numbers in (0, 1), the lower one first"
    _require(settings, "ltdm_bounds", are_bounds, allowed)
    fraction = settings["ltdm_fraction"]
    for key in ("ltdm_probability_rule", "ltdm_fraction_rule"):
        has_two = 0 < fraction < 1 or settings[key] == "constant"
        allowed = f"constant where ltdm_fraction ({fraction}) leaves only one buffer"
        _require(settings, key, has_two, allowed)


def _require(settings: dict[str, Any], key: str, holds: bool, allowed: str) -> None:
    if not holds:
        raise UserError(f"{key} ({settings[key]!r}) must be {allowed}.")
