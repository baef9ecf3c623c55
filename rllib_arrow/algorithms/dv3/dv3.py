"""DV3: DreamerV3 with one FIFO replay memory, the baseline that ARROW extends."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.annotations import override
from tensorboardX import SummaryWriter

from rllib_arrow.algorithms.continual import ContinualAlgorithm
from rllib_arrow.algorithms.continual_config import ContinualConfig, Minibatches
from rllib_arrow.algorithms.dv3.beyond_config import BeyondConfig
from rllib_arrow.algorithms.dv3.pictures import make_strips, save_strips
from rllib_arrow.inside.anatomy import Anatomy
from rllib_arrow.models.size import ModelSize, Variant
from rllib_arrow.ray_private import index_of
from rllib_arrow.replay.augmented import AugmentedReplay
from rllib_arrow.replay.rules import uses_losses
from rllib_arrow.settings import SettingError, rllib_setting, setting

PICTURED_SEQUENCES = 4


class DV3Config(BeyondConfig):
    """Configures DV3, at the paper's values."""

    model_size: str | dict[str, Any] = setting(
        "S", "Size of the networks: nano, micro, S (the paper's), or a mapping."
    )
    gru_norm: bool = setting(
        False,
        "Recurrence with a layer norm over its gates and a slow start, as in "
        "DreamerV3's published code, instead of the paper's plain GRU.",
    )
    posterior_skip: bool = setting(
        False,
        "Add a linear layer from the image's embedding to the posterior's logits, as "
        "the paper's published code does.",
    )
    learned_initial_state: bool = setting(
        False, "Start sequences and episodes from a learned state instead of zeros."
    )
    world_model_updates: int = setting(1000, "World-model updates in an epoch.", ">= 0")
    actor_critic_updates: int = setting(
        800, "Actor-critic updates in an epoch.", ">= 0"
    )
    interleaved: bool = setting(
        False,
        "Train the actor-critic after each world-model update, from the same "
        "minibatch, instead of all the one and then all the other; both as often as "
        "the larger of the two numbers says.",
    )
    batch_size_B: int = setting(
        16, "Sequences in a minibatch, over all learners.", ">= 1"
    )
    batch_length_T: int = setting(32, "Steps in a sequence.", ">= 1")
    horizon_H: int = setting(15, "Imagined steps in a dream.", ">= 1")
    dream_starts: int = setting(
        128,
        "Dreams per update, started from states drawn from the minibatch's "
        "posteriors; 0 for all of them.",
        ">= 0",
    )
    gae_lambda: float = setting(0.95, "Lambda of the dreams' returns.", "[0, 1]")
    entropy_scale: float = setting(3e-4, "Weight of the policy's entropy.", ">= 0")
    return_normalization_decay: float = setting(
        0.99, "Decay of the running range of returns.", "[0, 1]"
    )
    free_bits: float = setting(1.0, "Nats of KL that cost nothing.", ">= 0")
    reward_loss_scale: float = setting(
        1.0, "Weight of the loss that teaches to predict rewards.", ">= 0"
    )
    kl_dynamics_scale: float = setting(
        0.5, "Weight of the loss that moves the prior towards the posterior.", ">= 0"
    )
    kl_representation_scale: float = setting(
        0.1, "Weight of the loss that moves the posterior towards the prior.", ">= 0"
    )
    slow_critic_decay: float = setting(
        0.98, "Decay of the slowly moving copy of the critic.", "[0, 1]"
    )
    slow_critic_scale: float = setting(
        1.0, "Weight of the loss that keeps the critic near its slow copy.", ">= 0"
    )
    world_model_lr: float = setting(1e-4, "Learning rate of the world model.", "> 0")
    actor_lr: float = setting(1e-4, "Learning rate of the actor.", "> 0")
    critic_lr: float = setting(1e-4, "Learning rate of the critic.", "> 0")
    world_model_grad_clip_by_global_norm: float = setting(
        1000.0, "Largest gradient norm of the world model.", "> 0"
    )
    actor_grad_clip_by_global_norm: float = setting(
        100.0, "Largest gradient norm of the actor.", "> 0"
    )
    critic_grad_clip_by_global_norm: float = setting(
        100.0, "Largest gradient norm of the critic.", "> 0"
    )
    use_compile: bool | Literal["auto"] = setting(
        "auto",
        "Compile the updates, with C++ of this package and `torch.compile`. `auto`: on "
        "a CPU, where a C++ compiler is found and the whole run has 2,000 updates or "
        "more.",
    )
    mixed_precision: bool = setting(
        False, "Compute in bfloat16; weights stay in float32."
    )
    fifo_retention: Literal["fifo", "local_forgetting"] = setting(
        "fifo",
        "Which chunk the FIFO buffer drops: the oldest, or the oldest of those that "
        "look most like the new one.",
    )
    fifo_sampling: Literal["uniform", "curious"] = setting(
        "uniform",
        "Which chunks of the FIFO buffer a minibatch takes: any, or rather those that "
        "were seldom drawn and that the world model predicts badly.",
    )
    exploration_rule: Literal["first_epoch", "after_change"] = setting(
        "first_epoch",
        "Which epochs are played at random: the first, or also each one after the "
        "world model's loss on new rows has jumped.",
    )
    gamma: float = rllib_setting(0.997, "Discount of rewards to come.", "[0, 1]")

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class or DV3)

    @override(ContinualConfig)
    def minibatches(self) -> Minibatches:
        updates = (self.world_model_updates, self.actor_critic_updates)
        count = max(updates) if self.interleaved else sum(updates)
        return Minibatches(count, self.batch_size_B, self.batch_length_T)

    @override(ContinualConfig)
    def rehearsed_minibatches(self) -> Minibatches:
        if self.rehearsal_interval == 0:
            return super().rehearsed_minibatches()
        every = (
            self.minibatches().count if self.interleaved else self.actor_critic_updates
        )
        count = every // self.rehearsal_interval
        return self.minibatches()._replace(count=count)

    @override(ContinualConfig)
    def forget_training(self) -> None:
        super().forget_training()
        self.use_compile = False  # which asks for a compiler

    @override(ContinualConfig)
    def anatomy(self) -> Anatomy:
        from rllib_arrow.algorithms.dv3.anatomy import DreamerAnatomy

        return DreamerAnatomy()

    @override(ContinualConfig)
    def replay_settings(self) -> dict[str, Any]:
        return super().replay_settings() | {
            "fifo_retention": self.fifo_retention,
            "fifo_sampling": self.fifo_sampling,
            "exploration_rule": self.exploration_rule,
        }

    @property
    def replay_uses_losses(self) -> bool:
        """Whether the replay wants to know how well sequences were predicted."""
        return uses_losses(self.replay_settings())

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
        variant = {key: getattr(self, key) for key in Variant._fields}
        own = {"model_size": self.model_size, **variant}
        own["remembers_policy"] = self.remembers_policy
        own["learns_spread"] = self.advantage_scale == "state"
        return super()._model_config_auto_includes | own

    @override(AlgorithmConfig)
    def validate(self) -> None:
        super().validate()
        ModelSize.from_config(self.model_size)
        AugmentedReplay(**self.replay_settings())  # refuses what cannot be combined
        if self.batch_length_T > self.replay_chunk_length:
            problem = (
                f"must not exceed replay_chunk_length ({self.replay_chunk_length})"
            )
            raise SettingError("batch_length_T", self.batch_length_T, problem)
        if self.collect_ahead and self.exploration_rule != "first_epoch":
            problem = "must be false where exploration_rule waits for an epoch's losses"
            raise SettingError("collect_ahead", True, problem)


class DV3(ContinualAlgorithm):
    """DreamerV3 on a curriculum, with one FIFO replay memory."""

    @classmethod
    @override(Algorithm)
    def get_default_config(cls) -> DV3Config:
        return DV3Config()

    @override(ContinualAlgorithm)
    def epsilon(self, epoch: int) -> float:
        planned = super().epsilon(epoch)
        if self.config.exploration_rule == "first_epoch":
            return planned
        return max(planned, ray.get(self.replay.exploration.remote()))

    @override(ContinualAlgorithm)
    def _learn(self, epoch: int) -> None:
        super()._learn(epoch)
        if self.config.replay_uses_losses:
            self._tell_losses(epoch)
        interval = self.config.pictures_interval
        if interval and (epoch + 1) % interval == 0:
            self.draw_pictures(epoch + 1)

    def _tell_losses(self, epoch: int) -> None:
        """Lets the replay know how well each sequence of the epoch was predicted."""
        calls = self.learner_group.foreach_learner(_take_sequence_losses)
        shards = dict(call.get() for call in calls)
        losses = np.concatenate([shards[shard] for shard in sorted(shards)], axis=1)
        minibatches = self.config.minibatches()
        ray.get(self.replay.learned.remote(epoch, losses, *minibatches))

    def draw_pictures(self, epoch: int) -> None:
        """Writes reconstructions and dreams as PNG files and for TensorBoard."""
        length = self.config.batch_length_T
        batch = self.replay.sample.remote(PICTURED_SEQUENCES, length)
        calls = self.learner_group.foreach_learner(
            partial(_draw_strips, batch=batch, seed=self.config.seed)
        )
        strips = next(iter(calls)).get()
        directory, folder = self.run_directory.local, f"pictures/epoch_{epoch:06d}"
        save_strips(strips, directory / folder)
        for file in sorted((directory / folder).iterdir()):  # to a remote storage too
            self.run_directory.write(f"{folder}/{file.name}", file.read_bytes())
        with SummaryWriter(directory.as_posix()) as writer:
            for name, pixels in strips.items():
                writer.add_image(f"pictures/{name}", pixels, epoch, dataformats="HWC")


def _take_sequence_losses(learner: Any) -> tuple[int, np.ndarray]:
    """Runs on the learners; returns the shard's number and its losses."""
    return index_of(learner), learner.take_sequence_losses()


def _draw_strips(learner: Any, *, batch: ray.ObjectRef, seed: int) -> dict[str, Any]:
    """Runs on the learners, where the whole module is."""
    return make_strips(learner.module[DEFAULT_MODULE_ID], ray.get(batch), seed)
