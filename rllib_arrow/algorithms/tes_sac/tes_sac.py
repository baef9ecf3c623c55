"""TES-SAC: RLlib's SAC on pixels with a scheduled entropy target, and its settings."""

from __future__ import annotations

from typing import Any, Literal

from ray.rllib.algorithms.sac.sac import SAC, SACConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.annotations import override

from rllib_arrow.algorithms.continual import ContinualAlgorithm
from rllib_arrow.algorithms.continual_config import ContinualConfig, Minibatches
from rllib_arrow.algorithms.tes_sac.anatomy import SoftActorCriticAnatomy
from rllib_arrow.algorithms.tes_sac.entropy_target import Counting, EntropyTarget
from rllib_arrow.algorithms.tes_sac.learner import TESSACLearner
from rllib_arrow.algorithms.tes_sac.rl_module import PixelSACCatalog, TESSACRLModule
from rllib_arrow.inside.anatomy import Anatomy
from rllib_arrow.settings import SettingError, rllib_setting, setting

EXPLORATION_EPOCHS = 60  # in the paper, except on CoinRun


class TESSACConfig(ContinualConfig, SACConfig):
    """The paper's settings; those that RLlib's SAC has keep its name and meaning."""

    updates_per_epoch: int = setting(1000, "Gradient steps in an epoch.", ">= 1")
    cnn_depth: int = setting(
        32, "Channels of the first convolution; each next doubles them.", ">= 1"
    )
    mlp_units: int = setting(
        512, "Width of the hidden layers of policy and Q heads.", ">= 1"
    )
    mlp_layers: int = setting(2, "Number of these hidden layers.", ">= 0")
    max_logit_gap: float | None = setting(
        None,
        "The policy's logits are scaled down where they lie farther apart than this, "
        "and drawn back, so that it never becomes too certain to learn; None, as in "
        "the paper, for no limit.",
        "> 0",
    )
    target_entropy_fraction: float = setting(
        0.8,
        'Where `target_entropy` is "auto", it starts at this part of the uniform '
        "policy's entropy.",
        "> 0",
    )
    tes_start_epoch: int = setting(
        10, "The first epoch in which the target is scheduled.", ">= 0"
    )
    tes_lambda: float = setting(
        0.999, "Decay of the entropy's moving mean and variance.", "(0, 1)"
    )
    tes_mean_threshold: float = setting(
        0.01, "How close to the target the mean of a calm step is.", ">= 0"
    )
    tes_std_threshold: float = setting(
        0.05, "How small the deviation of a calm step is.", ">= 0"
    )
    tes_discount: float = setting(
        0.98, "What the target is multiplied by after `tes_period`.", "(0, 1)"
    )
    tes_period: int = setting(1000, "Calm steps before the target is lowered.", ">= 1")
    tes_counting: Counting = setting(
        "consecutive",
        '"consecutive" starts counting anew on a step that is not calm, as the paper '
        'does; "cumulative" goes on, as Xu et al. do.',
    )
    alpha_min: float = setting(1e-6, "Lower bound of the temperature.", "> 0")
    alpha_max: float = setting(0.5, "Upper bound of the temperature.", "> 0")
    exploration_epsilon: float = setting(
        0.1,
        "Probability of a uniformly random action while collecting, in the first "
        "epochs.",
        "[0, 1]",
    )
    exploration_epochs: int | Literal["auto", "all"] = setting(
        "auto",
        'For so many epochs, or "all"; "auto" is 60, but 0 on CoinRun.',
        ">= 0",
    )

    train_batch_size_per_learner: int = rllib_setting(
        128, "Transitions in a minibatch of one learner.", ">= 1"
    )
    gamma: float = rllib_setting(0.99, "Discount of rewards to come.", "[0, 1]")
    tau: float = rllib_setting(
        0.005, "How far the target networks move in each update.", "[0, 1]"
    )
    actor_lr: float = rllib_setting(5e-4, "Learning rate of the policy.", "> 0")
    critic_lr: float = rllib_setting(5e-4, "Learning rate of the Q networks.", "> 0")
    alpha_lr: float = rllib_setting(5e-4, "Learning rate of the temperature.", "> 0")
    initial_alpha: float = rllib_setting(0.2, "The temperature at the start.", "> 0")
    target_entropy: float | Literal["auto"] | None = rllib_setting(
        "auto", 'Entropy at which to start, in nats; "auto" or None as above.', "> 0"
    )
    grad_clip: float | None = rllib_setting(
        5.0, "Largest gradient norm of each network; None for no limit.", "> 0"
    )
    grad_clip_by: Literal["global_norm"] = rllib_setting(
        "global_norm", "The only way that TES-SAC clips gradients."
    )
    twin_q: Literal[True] = rllib_setting(True, "TES-SAC has two Q networks.")
    n_step: Literal[1] = rllib_setting(1, "TES-SAC learns from single steps.")
    target_network_update_freq: Literal[0] = rllib_setting(
        0, "TES-SAC moves the target networks in every update."
    )

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class or TESSAC)
        # The memory is the replay actor's; RLlib insists on a type all the same.
        self.replay_buffer_config = {
            "type": "EpisodeReplayBuffer",
            "no_local_replay_buffer": True,
        }
        self.num_steps_sampled_before_learning_starts = 0

    @override(ContinualConfig)
    def epsilon_at(self, epoch: int) -> float:
        if epoch == 0:
            return 1.0
        epochs = self.exploration_epochs
        if epochs == "auto":
            suite = self.curriculum_object().suite
            epochs = 0 if suite == "coinrun" else EXPLORATION_EPOCHS
        explores = epochs == "all" or epoch < epochs
        return self.exploration_epsilon if explores else 0.0

    def entropy_target(self, start: float) -> EntropyTarget:
        """Returns the schedule of these settings, at its beginning."""
        return EntropyTarget(
            start,
            decay=self.tes_lambda,
            mean_threshold=self.tes_mean_threshold,
            std_threshold=self.tes_std_threshold,
            discount=self.tes_discount,
            period=self.tes_period,
            counting=self.tes_counting,
        )

    @override(ContinualConfig)
    def anatomy(self) -> Anatomy:
        return SoftActorCriticAnatomy()

    @override(ContinualConfig)
    def minibatches(self) -> Minibatches:
        # Two neighbouring rows make a transition.
        return Minibatches(self.updates_per_epoch, self.total_train_batch_size, 2)

    @property
    @override(ContinualConfig)
    def method(self) -> str:
        return "TES-SAC"

    @override(ContinualConfig)
    def validate(self) -> None:
        super().validate()
        if not self.alpha_min <= self.initial_alpha <= self.alpha_max:
            bounds = f"alpha_min ({self.alpha_min}) and alpha_max ({self.alpha_max})"
            problem = f"must lie between {bounds}"
            raise SettingError("initial_alpha", self.initial_alpha, problem)

    @override(SACConfig)
    def get_default_rl_module_spec(self) -> RLModuleSpec:
        return RLModuleSpec(module_class=TESSACRLModule, catalog_class=PixelSACCatalog)

    @override(SACConfig)
    def get_default_learner_class(self) -> type[TESSACLearner]:
        return TESSACLearner

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return super()._model_config_auto_includes | {
            "cnn_depth": self.cnn_depth,
            "max_logit_gap": self.max_logit_gap,
            "head_fcnet_hiddens": [self.mlp_units] * self.mlp_layers,
            "head_fcnet_activation": "relu",
        }


class TESSAC(ContinualAlgorithm, SAC):
    """The model-free baseline: the same epochs, suites and memory as DV3."""

    @classmethod
    @override(SAC)
    def get_default_config(cls) -> TESSACConfig:
        return TESSACConfig()
