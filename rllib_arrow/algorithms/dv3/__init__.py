"""DV3."""

from rllib_arrow.algorithms.dv3.dv3 import DV3, DV3Config

__all__ = ["DV3", "DV3Config"]
