"""ARROW."""

from rllib_arrow.algorithms.arrow.arrow import ARROW, ARROWConfig

__all__ = ["ARROW", "ARROWConfig"]
