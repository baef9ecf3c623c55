"""QUIVER: ARROW plus rehearsal of what is long past, in dreams."""

from __future__ import annotations

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.utils.annotations import override

from rllib_arrow.algorithms.arrow.arrow import ARROW, ARROWConfig
from rllib_arrow.algorithms.continual_config import ContinualConfig
from rllib_arrow.settings import setting


class QUIVERConfig(ARROWConfig):
    """Configures QUIVER: how often ARROW rehearses, and nothing else."""

    rehearsal_interval: int = setting(
        4,
        "Rehearse after every so many actor-critic updates; without rehearsal it "
        "would be ARROW.",
        ">= 1",
    )

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class or QUIVER)

    @property
    @override(ContinualConfig)
    def method(self) -> str:
        """`QUIVER` for half and half, `QUIVER25`, `QUIVER75`, ... otherwise."""
        percent = round(100 * self.ltdm_fraction)
        return "QUIVER" if percent == 50 else f"QUIVER{percent}"


class QUIVER(ARROW):
    """ARROW whose actor rehearses dreams that start in the long-term memory."""

    @classmethod
    @override(Algorithm)
    def get_default_config(cls) -> QUIVERConfig:
        return QUIVERConfig()
