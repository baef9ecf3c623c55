"""What the cluster has, and whether an experiment fits on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray

from rllib_arrow import algorithm_class
from rllib_arrow.errors import UserError
from rllib_arrow.experiments.experiment import Experiment
from rllib_arrow.experiments.yaml_settings import examples
from rllib_arrow.ray_private import autoscaling_limits


def cluster_resources() -> dict[str, float]:
    """Returns what the cluster has, or may grow to if it has an autoscaler."""
    have = dict(ray.cluster_resources())
    for kind, limit in autoscaling_limits().items():
        have[kind] = max(limit, have.get(kind, 0))
    return have


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
        "hours; the paper's Atari and CoinRun runs would take weeks (a day or two on "
        "an A100)."
    )


def check_resources(
    experiment: Experiment, config: dict[str, Any], cluster: Mapping[str, float]
) -> None:
    """Refuses a request that would wait for ever, naming the settings behind it."""
    algorithm = algorithm_class(experiment.run)
    for plain in examples(config):
        request = algorithm.default_resource_request({"env": experiment.env, **plain})
        for kind, need in request.required_resources.items():
            have = cluster.get(kind, 0)
            if need > have:
                settings = _settings_behind(kind, plain, algorithm.get_default_config())
                raise UserError(
                    f"{experiment.file}: {settings} needs {need:g} {kind}s, "
                    f"the cluster has {have:g}"
                )


def _settings_behind(kind: str, plain: dict[str, Any], default: Any) -> str:
    per_actor = f"num_{kind.lower()}s_"
    keys = [key for key in vars(default) if key.startswith(per_actor)]
    keys += ["num_env_runners", "evaluation_num_env_runners", "num_learners"]
    given = [f"{key}={plain[key]}" for key in keys if plain.get(key)]
    return ", ".join(given) or f"run={default.algo_class.__name__}"
