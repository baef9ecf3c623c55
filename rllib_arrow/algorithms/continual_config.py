"""Settings that every algorithm of this package shares."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.utils.annotations import override
from ray.rllib.utils.from_config import NotProvided

from rllib_arrow.curriculum.callback import TaskScheduler
from rllib_arrow.curriculum.schedule import Curriculum

# The seeds of the paper's five runs, in its order.
PAPER_SEEDS = (123456789, 1337, 31337, 42, 987654321)


class Minibatches(NamedTuple):
    """How many minibatches an epoch takes, and of how many sequences of what length."""

    count: int
    batch_size: int
    length: int


class ContinualConfig(AlgorithmConfig):
    """An `AlgorithmConfig` with a curriculum and a spliced replay memory.

    Mixed in before the configuration of the algorithm it extends. One training
    iteration is one epoch: `rollout_fragment_length` steps from each environment,
    then the epoch's updates.
    """

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class)
        self.curriculum: dict[str, Any] = {}
        self.env_options: dict[str, Any] = {}
        self.label_settings: list[str] = []
        self.replay_capacity_chunks = 1024
        self.replay_chunk_length = 512
        self.replay_prefetch = 4
        self.replay_max_bytes: int | None = None
        self.custom_resources_for_replay: dict[str, float] = {}
        self.num_envs_per_evaluation = 16
        self.pictures_interval = 0

        # RLlib's own settings, at the paper's values.
        self.env = "Continual"
        self.seed = PAPER_SEEDS[0]
        self.num_env_runners = 0
        self.num_envs_per_env_runner = 4
        self.rollout_fragment_length = 4096
        self.evaluation_interval = 10
        self.evaluation_duration = 16
        self.evaluation_duration_unit = "episodes"
        self.callbacks_class = TaskScheduler
        # An epoch is one training step, however long or short it takes.
        self.min_time_s_per_iteration = None
        self.min_sample_timesteps_per_iteration = 0
        self.min_train_timesteps_per_iteration = 0
        # Runners get all they need with each call; there are no connectors to merge.
        self._dont_auto_sync_env_runner_states = True
        self.sample_timeout_s = 3600.0
        self.restart_failed_env_runners = True
        from rllib_arrow.algorithms.env_runner import ContinualEnvRunner

        self.env_runner_cls = ContinualEnvRunner

    def _set_given(self, **given: Any) -> None:
        for key, value in given.items():
            if value is not NotProvided:
                setattr(self, key, value)

    def continual(
        self,
        *,
        curriculum: dict[str, Any] = NotProvided,
        env_options: dict[str, Any] = NotProvided,
        label_settings: list[str] = NotProvided,
        replay_capacity_chunks: int = NotProvided,
        replay_chunk_length: int = NotProvided,
        replay_prefetch: int = NotProvided,
        replay_max_bytes: int | None = NotProvided,
        custom_resources_for_replay: dict[str, float] = NotProvided,
        num_envs_per_evaluation: int = NotProvided,
        pictures_interval: int = NotProvided,
    ) -> ContinualConfig:
        """Sets what the agent learns in which order, and how much it may remember.

        Args:
            curriculum: `{suite, tasks, order, epochs_per_task, cycles}`.
            env_options: Options of the suite, such as `repeat_action_probability`.
            label_settings: Settings that set this run apart from others of its method
                in a report, such as `entropy_scale`; a sweep names those it varies.
            replay_capacity_chunks: Chunks kept in all, over both buffers.
            replay_chunk_length: Steps in a chunk.
            replay_prefetch: Minibatches asked for ahead of need.
            replay_max_bytes: Refuse to store more than this; None for no limit.
            custom_resources_for_replay: Ray's custom resources that the replay actor
                asks for, to place it on a certain node.
            num_envs_per_evaluation: Environments side by side in an evaluation.
            pictures_interval: Write reconstructions and dreams every so many epochs;
                0 for never.
        """
        given = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        self._set_given(**given)
        return self

    def epsilon_at(self, epoch: int) -> float:
        """Returns the probability of a uniformly random action while collecting."""
        return 1.0 if epoch == 0 else 0.0

    def curriculum_object(self) -> Curriculum:
        """Returns the curriculum, checked."""
        return Curriculum.from_dict(self.curriculum)

    def replay_settings(self) -> dict[str, Any]:
        """Returns the keyword arguments of this run's `AugmentedReplay`."""
        return {
            "capacity_chunks": self.replay_capacity_chunks,
            "chunk_length": self.replay_chunk_length,
            "ltdm_fraction": 0.0,
            "seed": self.seed,
            "max_bytes": self.replay_max_bytes,
        }

    def minibatches(self) -> Minibatches:
        """Returns what one epoch of learning takes from replay, over all learners."""
        raise NotImplementedError

    @property
    def num_collectors(self) -> int:
        """How many env runners collect: the remote ones, or the one in the driver."""
        return max(1, self.num_env_runners)

    @property
    def frames_per_epoch(self) -> int:
        """Agent steps taken in one epoch, over all environments."""
        envs = self.num_collectors * self.num_envs_per_env_runner
        return envs * self.rollout_fragment_length

    @property
    def method(self) -> str:
        """The method's name, as in the paper."""
        raise NotImplementedError

    @property
    def reported_method(self) -> str:
        """The name under which scores of this run are reported."""
        paths = [path.split(".") for path in self.label_settings]
        values = (reduce(getitem, path[1:], getattr(self, path[0])) for path in paths)
        told = (f"{p[-1]}={v}" for p, v in zip(paths, values, strict=True))
        return " ".join([self.method, *("".join(value.split()) for value in told)])

    @override(AlgorithmConfig)
    def validate(self) -> None:
        super().validate()
        self.curriculum_object()
        try:
            self.reported_method  # noqa: B018
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(
                f"label_settings ({self.label_settings!r}) must be names of settings "
                f"({error})."
            ) from None
        for key in (
            "replay_capacity_chunks",
            "replay_chunk_length",
            "replay_prefetch",
            "num_envs_per_env_runner",
            "num_envs_per_evaluation",
        ):
            require(self, key, lambda v: isinstance(v, int) and v > 0, "an int > 0")
        require(self, "seed", lambda v: isinstance(v, int) and v >= 0, "an int >= 0")
        size, learners = self.minibatches().batch_size, max(1, self.num_learners)
        if size % learners:
            raise ValueError(
                f"A minibatch of {size} sequences cannot be shared by num_learners="
                f"{learners}; choose a batch size that divides by it."
            )
        if not self.in_evaluation:
            require(
                self,
                "rollout_fragment_length",
                lambda v: isinstance(v, int) and v > 0,
                "an int > 0",
            )
            require(
                self,
                "evaluation_duration",
                lambda v: isinstance(v, int) and v > 0,
                "a number of episodes > 0",
            )


def require(
    config: AlgorithmConfig, key: str, holds: Callable[[Any], bool], allowed: str
) -> None:
    """Raises a one-line error that names the setting, its value and what is allowed."""
    value = getattr(config, key)
    if isinstance(value, bool) or not holds(value):
        raise ValueError(f"{key} ({value!r}) must be {allowed}.")
