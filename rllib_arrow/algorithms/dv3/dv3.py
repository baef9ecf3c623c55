"""DV3: DreamerV3 with one FIFO replay memory, the baseline that ARROW extends."""

from __future__ import annotations

from functools import partial
from typing import Any

import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.annotations import override
from ray.rllib.utils.from_config import NotProvided
from tensorboardX import SummaryWriter

from rllib_arrow.algorithms.continual import ContinualAlgorithm
from rllib_arrow.algorithms.continual_config import (
    ContinualConfig,
    Minibatches,
    require,
)
from rllib_arrow.algorithms.dv3.pictures import make_strips, save_strips
from rllib_arrow.models.size import ModelSize

PICTURED_SEQUENCES = 4


class DV3Config(ContinualConfig):
    """Configures DV3, at the paper's values."""

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class or DV3)
        self.model_size: str | dict[str, Any] = "S"
        self.world_model_updates = 1000
        self.actor_critic_updates = 800
        self.interleaved = False
        self.batch_size_B = 16
        self.batch_length_T = 32
        self.horizon_H = 15
        self.dream_starts = 128
        self.gamma = 0.997
        self.gae_lambda = 0.95
        self.entropy_scale = 3e-4
        self.return_normalization_decay = 0.99
        self.free_bits = 1.0
        self.kl_dynamics_scale = 0.5
        self.kl_representation_scale = 0.1
        self.slow_critic_decay = 0.98
        self.slow_critic_scale = 1.0
        self.world_model_lr = 1e-4
        self.actor_lr = 1e-4
        self.critic_lr = 1e-4
        self.world_model_grad_clip_by_global_norm = 1000.0
        self.actor_grad_clip_by_global_norm = 100.0
        self.critic_grad_clip_by_global_norm = 100.0
        self.use_compile = False
        self.mixed_precision = False

    @override(AlgorithmConfig)
    def training(
        self,
        *,
        model_size: str | dict[str, Any] = NotProvided,
        world_model_updates: int = NotProvided,
        actor_critic_updates: int = NotProvided,
        interleaved: bool = NotProvided,
        batch_size_B: int = NotProvided,
        batch_length_T: int = NotProvided,
        horizon_H: int = NotProvided,
        dream_starts: int = NotProvided,
        gae_lambda: float = NotProvided,
        entropy_scale: float = NotProvided,
        return_normalization_decay: float = NotProvided,
        free_bits: float = NotProvided,
        kl_dynamics_scale: float = NotProvided,
        kl_representation_scale: float = NotProvided,
        slow_critic_decay: float = NotProvided,
        slow_critic_scale: float = NotProvided,
        world_model_lr: float = NotProvided,
        actor_lr: float = NotProvided,
        critic_lr: float = NotProvided,
        world_model_grad_clip_by_global_norm: float = NotProvided,
        actor_grad_clip_by_global_norm: float = NotProvided,
        critic_grad_clip_by_global_norm: float = NotProvided,
        use_compile: bool = NotProvided,
        mixed_precision: bool = NotProvided,
        **kwargs: Any,
    ) -> DV3Config:
        """Sets how the world model, the actor and the critic are trained.

        Args:
            model_size: "nano", "micro", "S" (the paper's), or a dict of sizes.
            world_model_updates: World-model updates in an epoch.
            actor_critic_updates: Actor-critic updates in an epoch.
            interleaved: Train the actor-critic after each world-model update, from
                the same minibatch, instead of one after the other.
            batch_size_B: Sequences in a minibatch, over all learners.
            batch_length_T: Steps in a sequence.
            horizon_H: Imagined steps in a dream.
            dream_starts: Dreams per update, started from states drawn from the
                minibatch's posteriors; 0 for all of them.
            gae_lambda: Lambda of the dreams' returns.
            entropy_scale: Weight of the policy's entropy.
            return_normalization_decay: Decay of the running return range.
            free_bits: Nats of KL that cost nothing.
            kl_dynamics_scale: Weight of the loss that teaches the prior.
            kl_representation_scale: Weight of the loss that tames the posterior.
            slow_critic_decay: Decay of the slow copy of the critic.
            slow_critic_scale: Weight of the pull towards the slow critic.
            world_model_lr: Learning rate of the world model.
            actor_lr: Learning rate of the actor.
            critic_lr: Learning rate of the critic.
            world_model_grad_clip_by_global_norm: Largest gradient norm.
            actor_grad_clip_by_global_norm: Largest gradient norm.
            critic_grad_clip_by_global_norm: Largest gradient norm.
            use_compile: Compile networks and the dream's step with `torch.compile`.
            mixed_precision: Compute in bfloat16, keep weights in float32.
        """
        own = {
            key: value
            for key, value in locals().items()
            if key not in ("self", "kwargs", "__class__")
        }
        super().training(**kwargs)
        self._set_given(**own)
        return self

    @override(ContinualConfig)
    def minibatches(self) -> Minibatches:
        updates = (self.world_model_updates, self.actor_critic_updates)
        count = max(updates) if self.interleaved else sum(updates)
        return Minibatches(count, self.batch_size_B, self.batch_length_T)

    @property
    @override(ContinualConfig)
    def method(self) -> str:
        return "DV3"

    @override(AlgorithmConfig)
    def get_default_learner_class(self) -> type:
        from rllib_arrow.algorithms.dv3.learner import DV3Learner

        return DV3Learner

    @override(AlgorithmConfig)
    def get_default_rl_module_spec(self) -> RLModuleSpec:
        from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule

        return RLModuleSpec(module_class=DV3RLModule)

    @property
    @override(AlgorithmConfig)
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return super()._model_config_auto_includes | {"model_size": self.model_size}

    @override(AlgorithmConfig)
    def validate(self) -> None:
        super().validate()
        ModelSize.from_config(self.model_size)
        for key in ("batch_size_B", "batch_length_T", "horizon_H"):
            require(self, key, lambda v: isinstance(v, int) and v > 0, "an int > 0")
        for key in ("world_model_updates", "actor_critic_updates", "dream_starts"):
            require(self, key, lambda v: isinstance(v, int) and v >= 0, "an int >= 0")
        for key in ("world_model_lr", "actor_lr", "critic_lr"):
            require(
                self,
                key,
                lambda v: isinstance(v, int | float) and v > 0,
                "a number > 0",
            )
        if self.batch_length_T > self.replay_chunk_length:
            raise ValueError(
                f"batch_length_T ({self.batch_length_T}) must not exceed "
                f"replay_chunk_length ({self.replay_chunk_length})."
            )


class DV3(ContinualAlgorithm):
    """DreamerV3 on a curriculum, with one FIFO replay memory."""

    @classmethod
    @override(Algorithm)
    def get_default_config(cls) -> DV3Config:
        return DV3Config()

    @override(ContinualAlgorithm)
    def _learn(self, epoch: int) -> None:
        super()._learn(epoch)
        interval = self.config.pictures_interval
        if interval and (epoch + 1) % interval == 0:
            self.draw_pictures(epoch + 1)

    def draw_pictures(self, epoch: int) -> None:
        """Writes reconstructions and dreams as PNG files and for TensorBoard."""
        length = self.config.batch_length_T
        batch = self.replay.sample.remote(PICTURED_SEQUENCES, length)
        calls = self.learner_group.foreach_learner(
            partial(_draw_strips, batch=batch, seed=self.config.seed)
        )
        strips = next(iter(calls)).get()
        directory = self.run_directory.local
        save_strips(strips, directory / "pictures" / f"epoch_{epoch:06d}")
        with SummaryWriter(directory.as_posix()) as writer:
            for name, pixels in strips.items():
                writer.add_image(f"pictures/{name}", pixels, epoch, dataformats="HWC")


def _draw_strips(learner: Any, *, batch: ray.ObjectRef, seed: int) -> dict[str, Any]:
    """Runs on the learners, where the whole module is."""
    return make_strips(learner.module[DEFAULT_MODULE_ID], ray.get(batch), seed)
