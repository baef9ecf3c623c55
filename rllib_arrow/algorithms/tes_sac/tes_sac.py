"""TES-SAC: RLlib's SAC on pixels with a scheduled entropy target, and its settings."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.sac.sac import SAC, SACConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.annotations import override
from ray.rllib.utils.from_config import NotProvided

from rllib_arrow.algorithms.continual import ContinualAlgorithm
from rllib_arrow.algorithms.continual_config import (
    ContinualConfig,
    Minibatches,
    require,
)
from rllib_arrow.algorithms.tes_sac.entropy_target import COUNTING_RULES, EntropyTarget
from rllib_arrow.algorithms.tes_sac.learner import TESSACLearner
from rllib_arrow.algorithms.tes_sac.rl_module import PixelSACCatalog, TESSACRLModule

EXPLORATION_EPOCHS = 60  # in the paper, except on CoinRun


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


_ALLOWED = {
    "an int > 0": (
        lambda v: _is_count(v) and v > 0,
        ("updates_per_epoch", "cnn_depth", "mlp_units", "tes_period"),
    ),
    "an int >= 0": (_is_count, ("mlp_layers", "tes_start_epoch")),
    '"auto" or an int >= 0': (
        lambda v: v == "auto" or _is_count(v),
        ("exploration_epochs",),
    ),
    "a number > 0": (
        lambda v: _is_number(v) and v > 0,
        (
            "actor_lr",
            "critic_lr",
            "alpha_lr",
            "alpha_min",
            "initial_alpha",
            "target_entropy_fraction",
        ),
    ),
    '"auto" or a number of nats > 0': (
        lambda v: v in (None, "auto") or (_is_number(v) and v > 0),
        ("target_entropy",),
    ),
    "a number >= 0": (
        lambda v: _is_number(v) and v >= 0,
        ("tes_mean_threshold", "tes_std_threshold"),
    ),
    "a number in [0, 1]": (
        lambda v: _is_number(v) and 0 <= v <= 1,
        ("exploration_epsilon", "gamma", "tau"),
    ),
    "a number in (0, 1)": (
        lambda v: _is_number(v) and 0 < v < 1,
        ("tes_lambda", "tes_discount"),
    ),
    f"one of {COUNTING_RULES}": (lambda v: v in COUNTING_RULES, ("tes_counting",)),
}


class TESSACConfig(ContinualConfig, SACConfig):
    """The paper's settings; those that RLlib's SAC has keep its name and meaning."""

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class or TESSAC)
        self.updates_per_epoch = 1000
        self.cnn_depth = 32
        self.mlp_units = 512
        self.mlp_layers = 2
        self.target_entropy_fraction = 0.8
        self.tes_start_epoch = 10
        self.tes_lambda = 0.999
        self.tes_mean_threshold = 0.01
        self.tes_std_threshold = 0.05
        self.tes_discount = 0.98
        self.tes_period = 1000
        self.tes_counting = "consecutive"
        self.alpha_min = 1e-6
        self.alpha_max = 0.5
        self.exploration_epsilon = 0.1
        self.exploration_epochs: int | str = "auto"

        # RLlib's own settings, at the paper's values.
        self.train_batch_size_per_learner = 128
        self.gamma = 0.99
        self.tau = 0.005
        self.actor_lr = self.critic_lr = self.alpha_lr = 5e-4
        self.initial_alpha = 0.2
        self.grad_clip = 5.0
        # The memory is the replay actor's; RLlib insists on a type all the same.
        self.replay_buffer_config = {
            "type": "EpisodeReplayBuffer",
            "no_local_replay_buffer": True,
        }
        self.num_steps_sampled_before_learning_starts = 0

    @override(SACConfig)
    def training(
        self,
        *,
        updates_per_epoch: int = NotProvided,
        cnn_depth: int = NotProvided,
        mlp_units: int = NotProvided,
        mlp_layers: int = NotProvided,
        target_entropy_fraction: float = NotProvided,
        tes_start_epoch: int = NotProvided,
        tes_lambda: float = NotProvided,
        tes_mean_threshold: float = NotProvided,
        tes_std_threshold: float = NotProvided,
        tes_discount: float = NotProvided,
        tes_period: int = NotProvided,
        tes_counting: str = NotProvided,
        alpha_min: float = NotProvided,
        alpha_max: float = NotProvided,
        exploration_epsilon: float = NotProvided,
        exploration_epochs: int | str = NotProvided,
        **kwargs: Any,
    ) -> TESSACConfig:
        """Sets how the agent learns; see `SACConfig.training` for the rest.

        Args:
            updates_per_epoch: Gradient steps in an epoch.
            cnn_depth: Channels of the first convolution; each next doubles them.
            mlp_units: Width of the hidden layers of policy and Q heads.
            mlp_layers: Number of these.
            target_entropy_fraction: Where `target_entropy` is "auto", it starts at this
                part of the uniform policy's entropy.
            tes_start_epoch: The first epoch in which the target is scheduled.
            tes_lambda: Decay of the entropy's moving mean and variance.
            tes_mean_threshold: How close to the target the mean of a calm step is.
            tes_std_threshold: How small the deviation of a calm step is.
            tes_discount: What the target is multiplied by after `tes_period`.
            tes_period: Calm steps before the target is lowered.
            tes_counting: "consecutive" starts counting anew on a step that is not
                calm, as the paper does; "cumulative" goes on, as Xu et al. do.
            alpha_min: Lower bound of the temperature.
            alpha_max: Upper bound of the temperature.
            exploration_epsilon: Probability of a uniformly random action while
                collecting, in the first epochs.
            exploration_epochs: For so many epochs; "auto" is 60, but 0 on CoinRun.
        """
        given = {
            key: value
            for key, value in locals().items()
            if key not in ("self", "kwargs", "__class__")
        }
        super().training(**kwargs)
        self._set_given(**given)
        return self

    @override(ContinualConfig)
    def epsilon_at(self, epoch: int) -> float:
        if epoch == 0:
            return 1.0
        epochs = self.exploration_epochs
        if epochs == "auto":
            suite = self.curriculum_object().suite
            epochs = 0 if suite == "coinrun" else EXPLORATION_EPOCHS
        return self.exploration_epsilon if epoch < epochs else 0.0

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
        for allowed, (holds, keys) in _ALLOWED.items():
            for key in keys:
                require(self, key, holds, allowed)
        if not self.alpha_min <= self.initial_alpha <= self.alpha_max:
            raise ValueError(
                f"initial_alpha ({self.initial_alpha}) must lie between alpha_min "
                f"({self.alpha_min}) and alpha_max ({self.alpha_max})."
            )
        self._refuse_what_is_not_done()

    def _refuse_what_is_not_done(self) -> None:
        for key, only in (
            ("twin_q", True),
            ("n_step", 1),
            ("target_network_update_freq", 0),
            ("grad_clip_by", "global_norm"),
        ):
            value = getattr(self, key)
            if value != only:
                raise ValueError(f"{key} ({value!r}) must be {only!r} in TES-SAC.")

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
            "head_fcnet_hiddens": [self.mlp_units] * self.mlp_layers,
            "head_fcnet_activation": "relu",
        }


class TESSAC(ContinualAlgorithm, SAC):
    """The model-free baseline: the same epochs, suites and memory as DV3."""

    @classmethod
    @override(SAC)
    def get_default_config(cls) -> TESSACConfig:
        return TESSACConfig()
