"""Every private name of Ray, RLlib and Tune that this package relies on.

What a function can reach stands here once. What a subclass overrides or inherits has
to stand in the subclass; `INHERITED` lists it. A test compares all of it with the Ray
that is installed, so that an upgrade fails there first and by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ray.rllib.core.learner.learner import Learner
    from ray.rllib.core.learner.learner_group import LearnerGroup
    from ray.rllib.env.env_runner_group import EnvRunnerGroup
    from ray.rllib.utils.actor_manager import FaultTolerantActorManager
    from ray.tune import Trainable

# How Tune calls what it writes. Without them a list of checkpoints that was cut short
# is not mended, and a damaged checkpoint does not make way for the one before it.
TUNE_LISTS = ("experiment_state-", "basic-variant-state-")
TUNE_CHECKPOINT = re.compile(r"checkpoint_\d{6}")


def is_listed(content: bytes, checkpoint: PurePosixPath) -> bool:
    """Whether a list that Tune wrote names a checkpoint; it holds pickles, as hex.

    Without it a checkpoint might be deleted that a resume would go on from.
    """
    name = "/".join(checkpoint.parts[-2:]).encode()  # with its trial's directory
    return name in content or name.hex().encode() in content


def actors_of(group: EnvRunnerGroup | LearnerGroup) -> FaultTolerantActorManager:
    """Returns what knows a group's actors and their health.

    Without it a runner that died could not be asked again by its number, and a
    checkpoint would be written although a learner is dead.
    """
    return group._worker_manager


def index_of(learner: Learner) -> int:
    """Returns which of the learners this is; without it all would learn one shard."""
    return learner._learner_index


def optimizers_of(learner: Learner) -> dict[str, Any]:
    """Returns a learner's optimisers by name.

    Without it a restored run would go on with the checkpoint's learning rates.
    """
    return learner._named_optimizers


def untrained_module(learner: Learner) -> Any:
    """Returns a learner's networks, by module, as they were before any update.

    Without it nobody could tell how far an update has moved them from their start.
    """
    return learner._make_module()


def storage_of(trainable: Trainable) -> Any:
    """Returns Tune's storage of the trial, or None outside of Tune.

    Without it a run's scores would stay on the node of its trial.
    """
    return getattr(trainable, "_storage", None)


def autoscaling_limits() -> dict[str, float]:
    """Returns what the cluster may grow to; {} if it has no autoscaler.

    Without it an experiment that only the grown cluster can run would be refused. Ray
    Train asks in the same way.
    """
    import ray

    return ray._private.state.state.get_max_resources_from_cluster_config() or {}


def stay_on_loopback() -> None:
    """Has a cluster that is started next listen on 127.0.0.1 alone.

    Without it `_node_ip_address="127.0.0.1"` is replaced by the machine's address, and
    every port of a local run is open to the network. Ray does this where a firewall
    would ask (macOS, Windows).
    """
    import os

    from ray._private import ray_constants

    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"  # for its processes
    ray_constants.ENABLE_RAY_CLUSTER = False


def registered_env(name: str) -> Callable[[dict], Any] | None:
    """Returns what `tune.register_env` was told under that name, if anything.

    Without it such a name could not be a task. RLlib's env runner asks in the same way.
    """
    from ray.tune.registry import ENV_CREATOR, _global_registry

    if not _global_registry.contains(ENV_CREATOR, name):
        return None
    return _global_registry.get(ENV_CREATOR, name)


@contextmanager
def never_retried(is_final: Callable[[Exception | None], bool]) -> Iterator[None]:
    """Has Tune give up a trial whose error is final, instead of starting it again.

    Without it a mistake of the user's is made `max_failures` times more.
    """
    from ray.tune.experiment import Trial

    handle_error, should_recover = Trial.handle_error, Trial.should_recover
    last: dict[str, Exception | None] = {}  # by trial

    def note(trial: Trial, exc: Exception | None = None) -> None:
        last[trial.trial_id] = exc
        handle_error(trial, exc)

    def judge(trial: Trial) -> bool:
        return should_recover(trial) and not is_final(last.get(trial.trial_id))

    Trial.handle_error, Trial.should_recover = note, judge
    try:
        yield
    finally:
        Trial.handle_error, Trial.should_recover = handle_error, should_recover


def is_deprecated(value: Any) -> bool:
    """Whether a setting's default says that RLlib no longer takes it.

    Without it the YAML would accept settings that change nothing.
    """
    from ray._common.deprecation import DEPRECATED_VALUE

    return type(value) is int and value == DEPRECATED_VALUE


class Inherited(NamedTuple):
    """A private name that a subclass of ours overrides, calls or sets."""

    owner: str  # module:class
    name: str
    parameters: str | None  # of a method or property; None for an attribute
    without: str  # what breaks if it is gone


_ALGORITHM = "ray.rllib.algorithms.algorithm:Algorithm"
_CONFIG = "ray.rllib.algorithms.algorithm_config:AlgorithmConfig"
_LEARNER = "ray.rllib.core.learner.learner:Learner"
_TORCH_LEARNER = "ray.rllib.core.learner.torch.torch_learner:TorchLearner"
_TRAINABLE = "ray.tune.trainable.trainable:Trainable"
_SAC_MODULE = (
    "ray.rllib.algorithms.sac.torch.default_sac_torch_rl_module:DefaultSACTorchRLModule"
)
_MODULE = "ray.rllib.core.rl_module.rl_module:RLModule"
_CATALOG = "ray.rllib.core.models.catalog:Catalog"

INHERITED = (
    Inherited(
        _ALGORITHM,
        "_compile_iteration_results",
        "self, *, train_results, eval_results",
        "results lack tasks, frames, scores and the end of the curriculum",
    ),
    Inherited(
        _ALGORITHM,
        "_run_one_evaluation",
        "self, parallel_train_future",
        "RLlib's own evaluation runs, which knows one task and other episodes",
    ),
    Inherited(
        _ALGORITHM,
        "_run_one_training_iteration",
        "self",
        "an epoch with an evaluation beside it does not train",
    ),
    Inherited(
        _ALGORITHM,
        "_run_one_training_iteration_and_evaluation_in_parallel",
        "self",
        "evaluation beside training evaluates weights of another epoch",
    ),
    Inherited(
        _ALGORITHM,
        "_make_on_env_runners_recreated_callbacks",
        "self, *, config, env_runner_group, restored_env_runner_indices",
        "a user's on_env_runners_recreated is not called",
    ),
    Inherited(
        _TRAINABLE,
        "_setup_logdir",
        "self",
        "`rllib evaluate` leaves a directory in the user's home",
    ),
    Inherited(_TRAINABLE, "_logdir", None, "likewise"),
    Inherited(
        "ray.rllib.utils.checkpoints:Checkpointable",
        "_check_component",
        "self, name, components, not_components",
        "parts of the state are computed where nobody asked for them",
    ),
    Inherited(
        _CONFIG,
        "_dont_auto_sync_env_runner_states",
        None,
        "weights travel to the runners twice an epoch",
    ),
    Inherited(
        _CONFIG,
        "_model_config_auto_includes",
        "self",
        "networks are built at RLlib's size instead of the configured one",
    ),
    Inherited(
        "ray.rllib.algorithms.sac.sac:SACConfig",
        "_model_config_auto_includes",
        "self",
        "likewise, for TES-SAC",
    ),
    *(
        Inherited(_CONFIG, name, None, "a connector is ignored without a word")
        for name in (
            "_env_to_module_connector",
            "_module_to_env_connector",
            "_learner_connector",
        )
    ),
    Inherited(
        _TORCH_LEARNER,
        "_make_module",
        "self",
        "weights do not start from the run's seed",
    ),
    Inherited(
        _TORCH_LEARNER,
        "_make_modules_ddp_if_necessary",
        "self",
        "several learners average gradients twice, or start from different weights",
    ),
    Inherited(
        _TORCH_LEARNER,
        "_set_optimizer_state",
        "self, state",
        "a restored optimiser has moments in the wrong layout and old learning rates",
    ),
    Inherited(_TORCH_LEARNER, "_device", None, "batches stay on the CPU"),
    Inherited(_TORCH_LEARNER, "_get_clip_function", "", "TES-SAC cannot clip"),
    Inherited(
        _TORCH_LEARNER, "_get_global_norm_function", "", "TES-SAC reports no norms"
    ),
    Inherited(_LEARNER, "_named_optimizers", None, "restored moments stay read-only"),
    Inherited(_LEARNER, "_optimizer_parameters", None, "TES-SAC finds no parameters"),
    Inherited(_LEARNER, "_params", None, "likewise"),
    Inherited(
        _LEARNER,
        "_weights_seq_no",
        None,
        "a learner refuses the weights of an older checkpoint",
    ),
    Inherited(
        "ray.rllib.algorithms.sac.sac_learner:SACLearner",
        "_get_target_entropy",
        "self, module_id",
        "the entropy target is not scheduled",
    ),
    Inherited(
        _SAC_MODULE,
        "_forward_train_discrete",
        "self, batch",
        "the next states get a graph that nobody needs",
    ),
    Inherited(
        _SAC_MODULE,
        "_qf_forward_train_helper",
        "self, batch, encoder, head, squeeze",
        "TES-SAC has no Q values",
    ),
    *(
        Inherited(_MODULE, name, "self, batch, **kwargs", "modules cannot act in RLlib")
        for name in (
            "_forward",
            "_forward_inference",
            "_forward_exploration",
            "_forward_train",
        )
    ),
    Inherited(
        _CATALOG, "_determine_components_hook", "self", "TES-SAC gets RLlib's encoder"
    ),
    Inherited(_CATALOG, "_model_config_dict", None, "likewise"),
)
