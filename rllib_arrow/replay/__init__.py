"""The augmented replay memory: splice, retain, compress, sample, save."""

from rllib_arrow.replay.actor import BatchStream, ReplayActor
from rllib_arrow.replay.augmented import AugmentedReplay
from rllib_arrow.replay.chunk import Chunk
from rllib_arrow.replay.draws import Draw
from rllib_arrow.replay.snapshot import SnapshotError
from rllib_arrow.replay.splicer import Splicer

__all__ = [
    "AugmentedReplay",
    "BatchStream",
    "Chunk",
    "Draw",
    "ReplayActor",
    "SnapshotError",
    "Splicer",
]
