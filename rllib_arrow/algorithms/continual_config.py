"""Settings that every algorithm of this package shares."""

from __future__ import annotations

from functools import partial, reduce
from operator import getitem
from typing import Any, NamedTuple

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.utils.annotations import override

from rllib_arrow import CONTINUAL
from rllib_arrow.algorithms.unsupported import IDLE, refuse_unsupported
from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.curriculum.task_scheduler import (
    TaskScheduler,
    class_of,
    with_scheduler,
)
from rllib_arrow.declared_settings import DeclaredSettings
from rllib_arrow.envs.suites import CUSTOM
from rllib_arrow.inside.anatomy import Anatomy
from rllib_arrow.settings import SettingError, rllib_setting, setting

# The seeds of the paper's five runs, in its order.
PAPER_SEEDS = (123456789, 1337, 31337, 42, 987654321)
LARGEST_SEED = 4_000_000_000  # NumPy's are below 2**32, and RLlib adds to them
PAPER_EPOCHS = 90  # of one task


class Minibatches(NamedTuple):
    """How many minibatches an epoch takes, and of how many sequences of what length."""

    count: int
    batch_size: int
    length: int


_setting = partial(setting, set_by="continual")


class ContinualConfig(DeclaredSettings, AlgorithmConfig):
    """An `AlgorithmConfig` with a curriculum and a spliced replay memory.

    Mixed in before the configuration of the algorithm it extends. One training
    iteration is one epoch: `rollout_fragment_length` steps from each environment,
    then the epoch's updates.
    """

    curriculum: dict[str, Any] = _setting(
        {},
        "What is learnt: `{suite, tasks, order, epochs_per_task, cycles, switch}`.",
    )
    env_options: dict[str, Any] = _setting(
        {}, "Options of the suite, such as `repeat_action_probability`."
    )
    label_settings: list[str] = _setting(
        [],
        "Settings that set this run apart from others of its method in a report, such "
        "as `entropy_scale`; a sweep names those it varies.",
    )
    replay_capacity_chunks: int = _setting(
        1024, "Chunks kept in all, over both buffers.", ">= 1"
    )
    replay_chunk_length: int = _setting(512, "Steps in a chunk.", ">= 1")
    replay_prefetch: int = _setting(4, "Minibatches asked for ahead of need.", ">= 1")
    replay_max_bytes: int | None = _setting(
        None, "Refuse to store more bytes than this; None for no limit.", ">= 1"
    )
    custom_resources_for_replay: dict[str, float] = _setting(
        {},
        "Ray's custom resources that the replay actor asks for, to place it on a "
        "certain node.",
    )
    collect_ahead: bool = _setting(
        False,
        "Collect the next epoch while this one is learned from, by the policy from "
        "before that; it saves time where env runners are actors (`num_env_runners`).",
    )
    num_envs_per_evaluation: int = _setting(
        16, "Environments side by side in an evaluation.", ">= 1"
    )
    max_steps_per_evaluated_episode: int = _setting(
        100_000,
        "Steps after which an evaluated episode is cut, with a line that says so; its "
        "return so far counts.",
        ">= 1",
    )
    pictures_interval: int = _setting(
        0,
        "Write what the world model reconstructs and dreams (TES-SAC has none) every "
        "so many epochs; 0 for never.",
        ">= 0",
    )
    diagnostics: bool = _setting(
        False,
        "Look inside: at the end of each task keep a few hundred held-out rows of it "
        "(beside the replay's budget), and at every evaluation measure on them which "
        "parts of the networks have moved, and whether they can still learn.",
    )

    seed: int = rllib_setting(
        PAPER_SEEDS[0],
        "All randomness of the run is derived from it.",
        f"[0, {LARGEST_SEED}]",
    )
    num_envs_per_env_runner: int = rllib_setting(
        4, "Environments side by side in an env runner.", ">= 1"
    )
    rollout_fragment_length: int = rllib_setting(
        4096, "Steps that each environment takes in an epoch.", ">= 1"
    )
    evaluation_interval: int | None = rllib_setting(
        10, "Evaluate every so many epochs; None or 0 for never.", ">= 0"
    )
    evaluation_duration: int = rllib_setting(
        16, "Episodes of each task in an evaluation.", ">= 1"
    )
    evaluation_sample_timeout_s: float | None = rllib_setting(
        3600.0,
        "Seconds that the evaluation of one task may take before the run stops.",
        "> 0",
    )
    sample_timeout_s: float | None = rllib_setting(
        3600.0, "Seconds to wait for an env runner before it counts as lost.", ">= 0"
    )

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class)
        self.set_defaults()
        self.env = CONTINUAL
        self.callbacks_class = TaskScheduler
        # An epoch is one training step, however long or short it takes.
        self.min_time_s_per_iteration = None
        self.min_sample_timesteps_per_iteration = 0
        self.min_train_timesteps_per_iteration = 0
        # Runners get all they need with each call; there are no connectors to merge.
        self._dont_auto_sync_env_runner_states = True
        from rllib_arrow.algorithms.env_runner import ContinualEnvRunner

        self.env_runner_cls = ContinualEnvRunner

    def epsilon_at(self, epoch: int) -> float:
        """Returns the probability of a uniformly random action while collecting."""
        return 1.0 if epoch == 0 else 0.0

    def curriculum_object(self) -> Curriculum:
        """Returns the curriculum, checked; `.environment()` alone is one of a task."""
        if self.env in (None, CONTINUAL):
            if self.env_config:
                problem = "must be empty here; tasks have kwargs, suites env_options"
                raise SettingError("env_config", dict(self.env_config), problem)
            return Curriculum.from_dict(self.curriculum)
        if not self.curriculum.keys().isdisjoint(("suite", "tasks")):
            problem = "must stand alone or be one of the curriculum's tasks"
            raise SettingError("env", self.env, problem)
        task = {"id": self.env, "kwargs": dict(self.env_config)}
        alone = {"suite": CUSTOM, "tasks": [task], "epochs_per_task": PAPER_EPOCHS}
        return Curriculum.from_dict(alone | self.curriculum)

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

    def rehearsed_minibatches(self) -> Minibatches:
        """Returns what it takes besides, to rehearse."""
        return Minibatches(0, 0, 0)

    @property
    def rehearsed_buffer(self) -> str:
        """Where rehearsal's minibatches come from: "fifo", "ltdm" or "both"."""
        return "fifo"

    def anatomy(self) -> Anatomy:
        """Returns what the parts of the networks are, for `diagnostics`."""
        raise NotImplementedError

    @property
    def remembers_policy(self) -> bool:
        """Whether rows are stored with the policy that acted."""
        return False

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
        labels = (f"{p[-1]}={v}" for p, v in zip(paths, values, strict=True))
        return " ".join([self.method, *("".join(label.split()) for label in labels)])

    @override(AlgorithmConfig)
    def validate(self) -> None:
        # In an evaluation RLlib changes settings of its own as it likes.
        self.check_settings(rllib=not self.in_evaluation)
        refuse_unsupported(self)
        super().validate()
        # A user's callbacks are added to the one that decides which task is on.
        self.callbacks_class = with_scheduler(
            self.callbacks_class, self.curriculum_object()
        )
        self._check_collect_ahead()
        self._check_first_epoch()
        try:
            self.reported_method  # noqa: B018
        except (AttributeError, KeyError, TypeError) as error:
            problem = f"must be names of settings ({error})"
            raise SettingError("label_settings", self.label_settings, problem) from None
        size, learners = self.minibatches().batch_size, self.num_learners
        if size % max(1, learners):
            problem = f"must divide the {size} sequences of a minibatch evenly"
            raise SettingError("num_learners", learners, problem)

    def forget_training(self) -> None:
        """Leaves nothing that would be refused, or asked for, where one only acts."""
        usual = self.algo_class.get_default_config()
        for name in IDLE:
            if hasattr(usual, name):
                setattr(self, name, getattr(usual, name))

    def _check_first_epoch(self) -> None:
        """Raises if the first epoch leaves nothing in the replay to learn from."""
        steps, least = self.rollout_fragment_length, self.replay_chunk_length
        if steps < least and not self.in_evaluation:
            problem = f"must be at least replay_chunk_length ({least})"
            raise SettingError("rollout_fragment_length", steps, problem)

    def _check_collect_ahead(self) -> None:
        """Raises if the next epoch's task is not known before this one is over."""
        scheduler = class_of(self.callbacks_class[0])
        if self.collect_ahead and scheduler is not TaskScheduler:
            problem = f"must be false where {scheduler.__name__} decides when to switch"
            raise SettingError("collect_ahead", True, problem)
