"""What the cluster has, and how an experiment is placed on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import ray

from rllib_arrow import algorithm_class
from rllib_arrow.errors import UserError
from rllib_arrow.experiments.experiment import Experiment
from rllib_arrow.experiments.yaml_settings import examples
from rllib_arrow.ray_private import autoscaling_limits

# Actors that a small cluster does without, the one least missed first, and the settings
# without it. Then the trial's own process does the same work, to the same result.
SPARED = {
    "num_env_runners": {"num_env_runners": 0},
    "num_learners": {"num_learners": 0},
    "evaluation_num_env_runners": {
        "evaluation_num_env_runners": 0,
        "evaluation_parallel_to_training": False,
    },
}


def cluster_resources() -> dict[str, float]:
    """Returns what the cluster has, or may grow to if it has an autoscaler."""
    have = dict(ray.cluster_resources())
    for kind, limit in autoscaling_limits().items():
        have[kind] = max(limit, have.get(kind, 0))
    return have


def place(
    experiment: Experiment, cluster: Mapping[str, float]
) -> tuple[dict[str, Any], list[str]]:
    """Returns the settings with GPUs and actors decided, and lines for the user.

    Raises if there is not enough of something however they are decided.
    """
    config, gpu_line = place_learners(experiment, cluster)
    config, actors_line = spare_actors(experiment, config, cluster)
    check_resources(experiment, config, cluster)
    return config, [line for line in (gpu_line, actors_line) if line]


def decided(experiment: Experiment, config: dict[str, Any]) -> dict[str, Any]:
    """Returns those settings that the cluster decided."""
    given = experiment.config
    return {k: v for k, v in config.items() if k not in given or given[k] != v}


def place_learners(
    experiment: Experiment, cluster: Mapping[str, float]
) -> tuple[dict[str, Any], str]:
    """Returns the settings with GPUs decided, and a line for the user (or "")."""
    config = dict(experiment.config)
    if config.get("num_gpus_per_learner", "auto") != "auto":
        return config, ""
    config["num_gpus_per_learner"] = 1 if cluster.get("GPU", 0) >= 1 else 0
    if config["num_gpus_per_learner"]:
        return config, ""
    return config, (
        "No GPU in the cluster: training on the CPU. MinAtar examples take minutes to "
        "hours; the paper's Atari and CoinRun runs would take about a week (a day or "
        "two on an A100)."
    )


def spare_actors(
    experiment: Experiment, config: dict[str, Any], cluster: Mapping[str, float]
) -> tuple[dict[str, Any], str]:
    """Returns the settings with no more actors than fit, and a line for the user."""
    short = _shortage(experiment, config, cluster)
    if short is None:
        return config, ""
    fewer, spared = dict(config), []
    for key, changes in SPARED.items():
        if not _can_be_spared(key, config.get(key)):
            continue
        fewer |= changes
        spared.append(f"{key}={config[key]}")
        if _shortage(experiment, fewer, cluster) is None:
            return fewer, (
                f"The cluster has {short.have:g} {short.kind}s, not {short.need:g}: "
                f"the trial's own process does the work of {', '.join(spared)}, with "
                "the same scores."
            )
    return fewer, ""  # what is short now, sparing does not mend


def _can_be_spared(key: str, value: Any) -> bool:
    """Whether so many actors can be none without a change to any score."""
    # Several env runners have environments of their own, several learners sums.
    several = key == "evaluation_num_env_runners"
    return type(value) is int and (value == 1 or (several and value > 1))


def check_resources(
    experiment: Experiment, config: dict[str, Any], cluster: Mapping[str, float]
) -> None:
    """Refuses a request that would wait for ever, naming the settings behind it."""
    if short := _shortage(experiment, config, cluster):
        raise UserError(
            f"{experiment.file}: {short.settings} needs {short.need:g} {short.kind}s, "
            f"the cluster has {short.have:g}"
        )


class Shortage(NamedTuple):
    """A resource of which a trial needs more than there is, and the settings behind."""

    kind: str
    need: float
    have: float
    settings: str


def _shortage(
    experiment: Experiment, config: dict[str, Any], cluster: Mapping[str, float]
) -> Shortage | None:
    """Returns the first resource that a trial would wait for in vain, if any."""
    algorithm = algorithm_class(experiment.run)
    for plain in examples(config):
        request = algorithm.default_resource_request({"env": experiment.env, **plain})
        if not all(request.bundles):
            actors = "num_cpus_per_env_runner and num_cpus_per_learner"
            raise UserError(f"{experiment.file}: {actors} must be above 0 under Tune")
        for kind, need in request.required_resources.items():
            have = cluster.get(kind, 0)
            if need > have:
                settings = _settings_behind(kind, plain, algorithm.get_default_config())
                return Shortage(kind, need, have, settings)
    return None


def _settings_behind(kind: str, plain: dict[str, Any], default: Any) -> str:
    per_actor = f"num_{kind.lower()}s_"
    keys = [key for key in vars(default) if key.startswith(per_actor)]
    keys += ["num_env_runners", "evaluation_num_env_runners", "num_learners"]
    given = [f"{key}={plain[key]}" for key in keys if plain.get(key)]
    return ", ".join(given) or f"run={default.algo_class.__name__}"
