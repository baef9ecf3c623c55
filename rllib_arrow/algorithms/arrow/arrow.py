"""ARROW: DV3 plus a long-term memory that matches the whole past."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.utils.annotations import override
from ray.rllib.utils.from_config import NotProvided

from rllib_arrow.algorithms.continual_config import ContinualConfig, require
from rllib_arrow.algorithms.dv3.dv3 import DV3, DV3Config


class ARROWConfig(DV3Config):
    """Configures ARROW: how the memory of DV3 is divided, and nothing else."""

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class or ARROW)
        self.ltdm_fraction = 0.5
        self.ltdm_probability = 0.5

    @override(DV3Config)
    def training(
        self,
        *,
        ltdm_fraction: float = NotProvided,
        ltdm_probability: float = NotProvided,
        **kwargs: Any,
    ) -> ARROWConfig:
        """Sets how the memory is divided; see `DV3Config.training` for the rest.

        Args:
            ltdm_fraction: Share of the memory that holds a uniform sample of all
                chunks ever seen; the rest holds the latest ones.
            ltdm_probability: How often a minibatch comes from the long-term buffer.
        """
        super().training(**kwargs)
        self._set_given(ltdm_fraction=ltdm_fraction, ltdm_probability=ltdm_probability)
        return self

    @override(ContinualConfig)
    def replay_settings(self) -> dict[str, Any]:
        return super().replay_settings() | {
            "ltdm_fraction": self.ltdm_fraction,
            "ltdm_probability": self.ltdm_probability,
        }

    @property
    @override(ContinualConfig)
    def method(self) -> str:
        """`ARROW` for the paper's half and half, `AR25`, `AR75`, ... otherwise."""
        percent = round(100 * self.ltdm_fraction)
        return "ARROW" if percent == 50 else f"AR{percent}"

    @override(DV3Config)
    def validate(self) -> None:
        super().validate()
        for key in ("ltdm_fraction", "ltdm_probability"):
            require(
                self,
                key,
                lambda v: isinstance(v, int | float) and 0 <= v <= 1,
                "in [0, 1]",
            )


class ARROW(DV3):
    """DV3 with an augmented replay memory."""

    @classmethod
    @override(Algorithm)
    def get_default_config(cls) -> ARROWConfig:
        return ARROWConfig()
