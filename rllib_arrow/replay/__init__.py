"""The augmented replay memory: splice, retain, compress, sample, save.

The process of a replay actor is up in a second because nothing here loads RLlib, but
for `AugmentedReplay`.
"""

from typing import Any

from rllib_arrow.replay.chunk import Chunk

__all__ = ["AugmentedReplay", "Chunk"]


def __getattr__(name: str) -> Any:
    if name == "AugmentedReplay":
        from rllib_arrow.replay.augmented import AugmentedReplay

        return AugmentedReplay
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
