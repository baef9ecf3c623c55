"""Hands an experiment to Ray Tune: a new run, or one to go on with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pyarrow import fs
from ray import tune

from rllib_arrow.algorithms.continual_config import LARGEST_SEED, PAPER_SEEDS
from rllib_arrow.checkpoints.keeper import (
    CheckpointKeeper,
    has_checkpoints,
    has_whole_list,
    mend_lists,
)
from rllib_arrow.errors import UserError
from rllib_arrow.experiments.experiment import Experiment
from rllib_arrow.experiments.location import (
    check_same_run,
    placed_settings,
    write_record,
)
from rllib_arrow.experiments.placement import (
    check_resources,
    decided,
    place,
    place_learners,
)
from rllib_arrow.experiments.yaml_settings import is_space, spaces, to_tune
from rllib_arrow.seeding import derive_seed

# Settings that reports show by method, setting, tasks and seed anyway.
REPORTED_ANYWAY = ("seed", "ltdm_fraction", "tasks", "order", "cycles")


def sample_seeds(num_samples: int) -> list[int]:
    """Returns the seeds of so many samples: the paper's five, then derived ones."""
    new = range(len(PAPER_SEEDS), num_samples)
    more = (derive_seed(PAPER_SEEDS[0], "sample", i) % LARGEST_SEED for i in new)
    return [*PAPER_SEEDS[:num_samples], *more]


def param_space(experiment: Experiment, config: dict[str, Any]) -> dict[str, Any]:
    """Returns what Tune varies: the file's search spaces, and a seed per sample.

    Seeds are a grid, so that in a sweep every value meets every seed, and so that
    trials are named after them; also a single seed, that the settings give.
    """
    seeds = config.get("seed", {"grid_search": sample_seeds(experiment.num_samples)})
    if not is_space(seeds):
        seeds = {"grid_search": [seeds]}
    varied = [path for path, _ in spaces(config) if path[-1] not in REPORTED_ANYWAY]
    own = {"env": experiment.env, "label_settings": [".".join(path) for path in varied]}
    return to_tune({**own, **config, "seed": seeds})


def make_tuner(
    experiment: Experiment,
    location: str,
    cluster: Mapping[str, float],
    callbacks: list[tune.Callback],
) -> tune.Tuner:
    """Returns a Tuner for a new run at the location, having told how it is placed."""
    config, lines = place(experiment, cluster)
    for line in lines:
        print(line)
    write_record(location, experiment, decided(experiment, config))
    checkpoints = dict(experiment.checkpoint_config)
    keeper = CheckpointKeeper(checkpoints.pop("num_to_keep"))
    storage, _, name = location.rpartition("/")
    return tune.Tuner(
        experiment.run,
        param_space=param_space(experiment, config),
        tune_config=tune.TuneConfig(trial_dirname_creator=trial_dirname),
        run_config=tune.RunConfig(
            name=name,
            storage_path=storage,
            stop=experiment.stop or None,
            verbose=0,
            callbacks=[*callbacks, keeper],
            checkpoint_config=tune.CheckpointConfig(**checkpoints),
            failure_config=tune.FailureConfig(max_failures=experiment.max_failures),
        ),
    )


def restore_tuner(
    experiment: Experiment,
    location: str,
    cluster: Mapping[str, float],
    callbacks: list[tune.Callback],
) -> tune.Tuner:
    """Returns a Tuner that goes on with the unfinished and failed trials of a run.

    A run that was stopped before Tune listed its trials has none to go on with.
    """
    check_same_run(experiment, location)
    store, path = fs.FileSystem.from_uri(location)
    for line in mend_lists(store, PurePosixPath(path)):
        print(line)
    if not has_whole_list(store, PurePosixPath(path)):
        if has_checkpoints(store, PurePosixPath(path)):
            problem = "Tune's list of its trials is missing or damaged, so the run"
            remedy = "its checkpoints can be evaluated"
            raise UserError(f"{location}: {problem} cannot be resumed; {remedy}")
        print(f"{location}: stopped before its first checkpoint: begun anew")
        return make_tuner(experiment, location, cluster, callbacks)
    # Tune goes on with the settings that it wrote down, also in a smaller cluster.
    config = place_learners(experiment, cluster)[0] | placed_settings(location)
    check_resources(experiment, config, cluster)
    return tune.Tuner.restore(location, trainable=experiment.run, resume_errored=True)


def trial_dirname(trial: Any) -> str:
    """Returns a name that sorts by number and says what the trial varies."""
    varied = (f"{k.split('/')[-1]}={v}" for k, v in trial.evaluated_params.items())
    settings = re.sub(r"[^\w.=,+-]+", "", ",".join(varied))[:80]
    return f"{trial.trial_id.rpartition('_')[2]}_{settings}"
