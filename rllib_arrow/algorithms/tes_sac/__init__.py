"""TES-SAC, the model-free baseline."""

from rllib_arrow.algorithms.tes_sac.tes_sac import TESSAC, TESSACConfig

__all__ = ["TESSAC", "TESSACConfig"]
