"""QUIVER."""

from rllib_arrow.algorithms.quiver.quiver import QUIVER, QUIVERConfig

__all__ = ["QUIVER", "QUIVERConfig"]
