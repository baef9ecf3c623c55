"""Which settings differ among runs that are reported as one method."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rllib_arrow.errors import UserError
from rllib_arrow.files import check_regular
from rllib_arrow.runs.read import Run
from rllib_arrow.settings import brief

PARAMS_JSON = "params.json"  # Tune's, in a trial's directory: what was set
MAX_BYTES = 2**20
# What may differ between seeds: where and how a run computes, and what it tells.
FREE = {
    *("seed", "env", "label_settings", "diagnostics", "pictures_interval"),
    *("num_env_runners", "num_cpus_per_env_runner", "sample_timeout_s"),
    *("num_learners", "num_cpus_per_learner", "num_gpus_per_learner"),
    *("local_gpu_idx", "use_compile", "replay_prefetch", "replay_max_bytes"),
    *("evaluation_num_env_runners", "evaluation_parallel_to_training"),
    *("evaluation_config", "evaluation_sample_timeout_s"),
    *("custom_resources_for_replay", "log_level", "callbacks"),
}
UNTOLD = "left alone"


def pooled_settings(runs: Iterable[Run]) -> dict[str, list[str]]:
    """Returns the settings in which runs differ, each with the values that it has.

    Runs can be compared as far as Tune wrote down what they were set to.
    """
    told = [params for run in runs if (params := _params(run.path.parent))]
    found = {}
    for name in sorted({name for params in told for name in params} - FREE):
        values = {
            json.dumps(params[name]) if name in params else UNTOLD: params.get(name)
            for params in told
        }
        if len(values) > 1:
            found[name] = [
                UNTOLD if text == UNTOLD else brief(value)
                for text, value in values.items()
            ]
    return found


def _params(directory: Path) -> dict[str, Any]:
    """Returns what a trial was set to; {} if that is not known."""
    file = directory / PARAMS_JSON
    try:
        check_regular(file, MAX_BYTES)
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, UserError):
        return {}
    return content if isinstance(content, dict) else {}
