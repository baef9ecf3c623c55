"""ARROW: DV3 plus a long-term memory that matches the whole past."""

from __future__ import annotations

from typing import Any, Literal

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.utils.annotations import override

from rllib_arrow.algorithms.continual_config import ContinualConfig
from rllib_arrow.algorithms.dv3.dv3 import DV3, DV3Config
from rllib_arrow.settings import SettingError, setting


class ARROWConfig(DV3Config):
    """Configures ARROW: how the memory of DV3 is divided, and nothing else."""

    ltdm_fraction: float = setting(
        0.5,
        "Share of the memory that holds a uniform sample of all chunks ever seen; the "
        "rest holds the latest ones.",
        "[0, 1]",
    )
    ltdm_probability: float | Literal["fraction"] = setting(
        0.5,
        "How often a minibatch comes from the long-term buffer: the paper's half, or "
        'as often as its share of the memory, "fraction".',
        "[0, 1]",
    )
    ltdm_probability_rule: Literal["constant", "after_change", "balanced"] = setting(
        "constant",
        "How `ltdm_probability` moves from epoch to epoch: not at all; low after the "
        "data changed and higher with time; or so that the world model's losses in "
        "both buffers stand alike to their running means.",
    )
    ltdm_fraction_rule: Literal["constant", "after_change", "balanced"] = setting(
        "constant", "How `ltdm_fraction` moves, likewise, at the same memory in all."
    )
    ltdm_bounds: list[float] = setting(
        [0.25, 0.75], "Between which `ltdm_probability` and `ltdm_fraction` may move."
    )

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class or ARROW)

    @override(ContinualConfig)
    def replay_settings(self) -> dict[str, Any]:
        by_share = self.ltdm_probability == "fraction"
        return super().replay_settings() | {
            "ltdm_fraction": self.ltdm_fraction,
            "ltdm_probability": (
                self.ltdm_fraction if by_share else self.ltdm_probability
            ),
            "ltdm_probability_rule": self.ltdm_probability_rule,
            "ltdm_fraction_rule": self.ltdm_fraction_rule,
            "ltdm_bounds": list(self.ltdm_bounds),
        }

    @property
    @override(ContinualConfig)
    def rehearsed_buffer(self) -> str:
        if self.ltdm_fraction == 0:
            return super().rehearsed_buffer
        return "ltdm" if self.rehearsal_from == "long_term" else "both"

    @property
    @override(ContinualConfig)
    def method(self) -> str:
        """`ARROW` for the paper's half and half, `AR25`, `AR75`, ... otherwise."""
        percent = round(100 * self.ltdm_fraction)
        return "ARROW" if percent == 50 else f"AR{percent}"

    @override(DV3Config)
    def validate(self) -> None:
        super().validate()
        moves = self.ltdm_fraction_rule != "constant"
        if moves and self.ltdm_probability == "fraction":
            problem = "must be a number where ltdm_fraction moves"
            raise SettingError("ltdm_probability", self.ltdm_probability, problem)


class ARROW(DV3):
    """DV3 with an augmented replay memory."""

    @classmethod
    @override(Algorithm)
    def get_default_config(cls) -> ARROWConfig:
        return ARROWConfig()
