"""A user's callbacks, as RLlib's own env runners call them."""

from __future__ import annotations

from typing import Any

from ray.rllib.callbacks.utils import make_callback
from ray.rllib.env import INPUT_ENV_SPACES
from ray.rllib.env.env_runner import EnvRunner

from rllib_arrow.algorithms.recorder import Recorder
from rllib_arrow.algorithms.unsupported import CALLED, has_callback


def call_back(runner: EnvRunner, event: str, **given: Any) -> None:
    """Calls what the user has set for the event."""
    make_callback(
        event,
        callbacks_objects=runner.callbacks,
        callbacks_functions=getattr(runner.config, f"callbacks_{event}"),
        kwargs={"env_runner": runner, "metrics_logger": runner.metrics, **given},
    )


def call_back_after_sampling(
    runner: EnvRunner, recorder: Recorder, info: dict[str, Any]
) -> None:
    """Calls on_episode_end and on_sample_end; adds the metrics logged by them."""
    if has_callback(runner.config, "on_episode_end", "on_sample_end"):
        spaces = runner.get_spaces()[INPUT_ENV_SPACES]
        samples = []
        for stretch in recorder.stretches():
            episode = recorder.episode(stretch, *spaces)
            samples.append(episode)
            if stretch.is_whole:
                call_back(
                    runner,
                    "on_episode_end",
                    episode=episode,
                    prev_episode_chunks=[],
                    env=runner.env,
                    rl_module=runner.module,
                    env_index=stretch.env,
                )
        call_back(runner, "on_sample_end", samples=samples)
    if has_callback(runner.config, *CALLED):
        info["metrics"] = runner.metrics.reduce()
