"""A user's callbacks on the env runners, and what cannot be honoured."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
import pytest
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.callbacks.callbacks import RLlibCallback

from rllib_arrow.algorithms.env_runner import ContinualEnvRunner
from rllib_arrow.algorithms.workers import DrivesWorkers
from rllib_arrow.curriculum.task_scheduler import TaskScheduler, class_of
from rllib_arrow.errors import UserError
from tests.algorithms.tiny import tiny_config, train


class Listener(RLlibCallback):
    """Keeps what it hears, and logs the returns of episodes."""

    def __init__(self):
        self.episodes, self.samples, self.tasks = [], [], []

    def on_environment_created(self, *, env_context, **kwargs) -> None:
        self.tasks.append(env_context["task"])

    def on_episode_end(self, *, episode, env_index, metrics_logger, **kwargs) -> None:
        self.episodes.append((env_index, episode))
        metrics_logger.log_value("my_return", episode.get_return(), window=1000)

    def on_sample_end(self, *, samples, **kwargs) -> None:
        self.samples.append(samples)


class Stepper(RLlibCallback):
    def on_episode_step(self, **kwargs) -> None:
        pass


@pytest.mark.parametrize("evaluates", [False, True])
def test_a_runner_that_is_back_is_told_once_and_of_the_right_group(evaluates):
    told, group = [], object()
    driver = SimpleNamespace(
        restore_env_runners=lambda group: [2],
        eval_env_runner_group=group if evaluates else None,
        config="training",
        evaluation_config="evaluation",
        _make_on_env_runners_recreated_callbacks=lambda **call: told.append(call),
    )
    DrivesWorkers._recover(driver, group)
    [call] = told
    assert call["config"] == ("evaluation" if evaluates else "training")
    assert call["restored_env_runner_indices"] == [2]
    # What RLlib finds at the start of an iteration, it tells itself.
    assert DrivesWorkers.restore_env_runners is Algorithm.restore_env_runners


def test_episodes_hold_the_rows_that_were_played():
    config = tiny_config().callbacks(Listener)
    config.env_runners(rollout_fragment_length=120)
    runner = ContinualEnvRunner(config=config, worker_index=1)
    silent = ContinualEnvRunner(config=tiny_config().copy(), worker_index=1)
    silent.config.env_runners(rollout_fragment_length=120)
    streams, info = runner.sample(epoch=0, task="breakout")
    expected, plain = silent.sample(epoch=0, task="breakout")
    for ours, theirs in zip(streams, expected, strict=True):
        assert all(map(np.array_equal, ours, theirs))  # listening changes nothing
    assert "metrics" in info and "metrics" not in plain

    [listener] = runner.callbacks
    assert listener.tasks == ["breakout"]
    returns = [episode.get_return() for _, episode in listener.episodes]
    assert returns == pytest.approx(info["episode_returns"]) and len(returns) > 4
    index, episode = listener.episodes[0]
    length, stream = len(episode) + 1, streams[index]
    assert np.array_equal(episode.get_observations(), stream.obs[:length])
    assert np.array_equal(episode.get_actions(), stream.actions[: length - 1])
    assert episode.is_terminated == stream.is_terminated[length - 1]
    assert episode.is_done and stream.is_first[length]
    # Samples are all that was played, also what the end of the epoch cut.
    [samples] = listener.samples
    assert sum(len(sample) + 1 for sample in samples) == info["frames"]
    assert sum(not sample.is_done for sample in samples) == len(streams)


@pytest.mark.parametrize("runners", [0, 1])
def test_what_a_callback_logs_is_in_the_results(ray_two_cpus, runners):
    config = tiny_config().callbacks(Listener)
    config.env_runners(num_env_runners=runners, num_cpus_per_env_runner=0)
    config.evaluation(evaluation_interval=0)
    algorithm = config.build_algo()
    played = [result["env_runners"] for result in train(algorithm, 2)]
    played = [seen for seen in played if seen["num_episodes"]]
    assert played
    for seen in played:
        assert seen["my_return"] == pytest.approx(seen["episode_return_mean"])
    algorithm.stop()


def test_functions_are_called_too():
    heard = []
    config = tiny_config().callbacks(on_sample_end=lambda **kwargs: heard.append(1))
    ContinualEnvRunner(config=config, worker_index=1).sample(epoch=0)
    assert heard == [1]


def test_an_error_of_a_callback_is_not_blamed_on_the_environment():
    def fails(**kwargs):
        raise KeyError("mine")

    config = tiny_config().callbacks(on_sample_end=fails)
    with pytest.raises(KeyError, match="mine"):
        ContinualEnvRunner(config=config, worker_index=1).sample(epoch=0)


def test_callbacks_that_are_never_called_are_named(caplog):
    with caplog.at_level(logging.WARNING, logger="rllib_arrow"):
        tiny_config().callbacks([Listener, Stepper]).validate()
    [line] = [m for m in caplog.messages if "never called" in m]
    assert line.startswith("on_episode_step is never called")


def connector(*args):
    return None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: c.training(lr=0.1), "lr .0.1. must be left alone: set world_model"),
        (lambda c: c.env_runners(explore=False), "explore .False. must be True"),
        (
            lambda c: c.env_runners(env_to_module_connector=connector),
            "env_to_module_connector .* must be None",
        ),
        (
            lambda c: c.env_runners(module_to_env_connector=connector),
            "module_to_env_connector .* must be None",
        ),
        (
            lambda c: c.learners(learner_connector=connector),
            "learner_connector .* must be None",
        ),
        (
            lambda c: c.multi_agent(
                policies={"a", "b"}, policy_mapping_fn=lambda *a, **k: "a"
            ),
            "policies .*'a', 'b'.* one agent",
        ),
        (lambda c: c.offline_data(input_="data.json"), "input_ .'data.json'. must be"),
        (
            lambda c: c.evaluation(evaluation_duration_unit="timesteps"),
            "evaluation_duration_unit .'timesteps'. must be 'episodes'",
        ),
        (
            lambda c: c.evaluation(custom_evaluation_function=connector),
            "custom_evaluation_function",
        ),
        (
            lambda c: c.api_stack(
                enable_rl_module_and_learner=False,
                enable_env_runner_and_connector_v2=False,
            ),
            "enable_rl_module_and_learner .False. must be True",
        ),
    ],
)
@pytest.mark.parametrize("method", ["ARROW", "TES-SAC"])
def test_what_cannot_be_honoured_is_refused_by_name(change, named, method):
    if method == "TES-SAC":
        named = named.replace("world_model", "actor_lr")
    with pytest.raises(UserError, match=named) as caught:
        change(tiny_config(method)).validate()
    assert "\n" not in str(caught.value)


def test_a_setting_of_rllibs_in_whose_place_there_are_others_is_refused():
    clip = "world_model_grad_clip_by_global_norm, actor_grad_clip_by_global_norm"
    with pytest.raises(UserError, match=rf"grad_clip .1.0. must .*: set {clip}"):
        tiny_config().training(grad_clip=1.0).validate()
    tiny_config("TES-SAC").training(grad_clip=1.0).validate()
    config = tiny_config("DV3").training(train_batch_size_per_learner=9)
    with pytest.raises(UserError, match=r"per_learner .9. must .*: set batch_size_B"):
        config.validate()


def test_an_evaluation_that_does_not_explore_is_refused_by_name():
    config = tiny_config().evaluation(evaluation_config={"explore": False})
    with pytest.raises(UserError, match=r"evaluation_config\.explore .False."):
        config.get_evaluation_config_object().validate()


def test_a_function_that_makes_a_callback_is_taken_as_rllib_takes_it():
    config = tiny_config().callbacks(lambda: Listener())
    config.validate()
    runner = ContinualEnvRunner(config=config, worker_index=1)
    streams, _ = runner.sample(epoch=0, task="breakout")
    listener = runner.callbacks[-1]
    assert type(listener) is Listener and listener.episodes and streams


def test_a_function_may_make_the_rule_that_switches_tasks():
    class Mine(TaskScheduler):
        pass

    config = tiny_config().callbacks(lambda: Mine())
    config.validate()
    assert [class_of(entry) for entry in config.callbacks_class] == [Mine]
