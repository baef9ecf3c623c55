"""Settings of what goes beyond the paper; see docs/beyond.md. All of it is off."""

from __future__ import annotations

from rllib_arrow.algorithms.continual_config import ContinualConfig
from rllib_arrow.settings import setting


class BeyondConfig(ContinualConfig):
    """Configures methods that DV3 and ARROW may be combined with."""

    rehearsal_interval: int = setting(
        0,
        "Rehearse after every so many actor-critic updates: dream from rows of the "
        "long-term buffer and have the actor clone the best quarter of the dreams; 0 "
        "for never.",
        ">= 0",
    )
    rehearsal_siblings: int = setting(
        4, "Rehearsed dreams from one start, graded against each other.", ">= 2"
    )
    rehearsal_scale: float = setting(
        1.0, "Learning rate of rehearsal, as a multiple of `actor_lr`.", "> 0"
    )
