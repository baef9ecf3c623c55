"""Settings of what goes beyond the paper; see docs/beyond.md. All of it is off."""

from __future__ import annotations

from typing import Literal

from ray.rllib.utils.annotations import override

from rllib_arrow.algorithms.continual_config import ContinualConfig
from rllib_arrow.settings import SettingError, setting


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
    rehearsal_from: Literal["long_term", "both"] = setting(
        "long_term",
        "Whose rows are rehearsed: the long-term buffer's, or those of both buffers, "
        "each as often as minibatches come from it.",
    )
    rehearsal_through: Literal["policy", "logits"] = setting(
        "policy",
        "What cloning moves: the policy with its 1 % of uniform, behind which an "
        "action that is all but excluded has no gradient, or the logits without it.",
    )
    rehearsal_scale: float = setting(
        1.0, "Learning rate of rehearsal, as a multiple of `actor_lr`.", "> 0"
    )
    cloning: bool = setting(
        False,
        "Remember with each row what the agent thought there (its policy and its "
        "value, two bytes a number) and keep it near that on long-term rows; only "
        "where there is a long-term buffer.",
    )
    cloning_scale: float = setting(
        0.05, "Weight of the KL to the policy that acted.", ">= 0"
    )
    cloning_value_scale: float = setting(
        0.05, "Weight of the squared distance to the value of then, in symlog.", ">= 0"
    )
    advantage_scale: Literal["range", "state"] = setting(
        "range",
        "What advantages are divided by: the running range of all returns, or the "
        "spread of returns that is learned for each state, so that rewards of any size "
        "count alike.",
    )
    advantage_floor: float = setting(
        0.1, "The smallest spread that advantages are divided by.", "> 0"
    )
    ewc_scale: float = setting(
        0.0,
        "Share of the distance to its running mean that a weight of the actor or the "
        "world model is pulled back with each update, times its Fisher information "
        "relative to the mean one; 0 for none.",
        "[0, 1]",
    )
    ewc_updates: int = setting(
        2000, "Updates over which mean and Fisher information reach back.", ">= 1"
    )
    l2_init_scale: float = setting(
        0.0,
        "How fast weights are pulled to the initial ones, as a multiple of their "
        "learning rate; 0 for not at all.",
        ">= 0",
    )

    @property
    @override(ContinualConfig)
    def remembers_policy(self) -> bool:
        return self.cloning

    @override(ContinualConfig)
    def validate(self) -> None:
        super().validate()
        if self.cloning and self.rehearsed_buffer == "fifo":
            problem = "must be false where there is no long-term buffer"
            raise SettingError("cloning", self.cloning, problem)
