"""Plays one task on its vector environments, to collect or to evaluate."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import ray
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.utils import force_list
from ray.rllib.utils.annotations import override
from ray.rllib.utils.checkpoints import Checkpointable

from rllib_arrow.algorithms.acting import ActingPolicy
from rllib_arrow.algorithms.recorder import Recorder
from rllib_arrow.algorithms.runner_callbacks import (
    call_back,
    call_back_after_sampling,
)
from rllib_arrow.algorithms.spaces import shared_spaces
from rllib_arrow.envs.base import Rows, VectorTask
from rllib_arrow.envs.suites import make_task
from rllib_arrow.errors import UserError
from rllib_arrow.evaluation.protocol import EpisodeScores, play_episodes
from rllib_arrow.inside.anatomy import Arrays
from rllib_arrow.inside.play import SEQUENCES, play_sequences
from rllib_arrow.replay.chunk import Chunk
from rllib_arrow.seeding import derive_rng, derive_seed

TASK = "task"
Played = TypeVar("Played")
Weights = dict[str, Any] | ray.ObjectRef | None


class ContinualEnvRunner(EnvRunner, Checkpointable):
    """An RLlib env runner on the suites' native vector environments.

    Environments, random streams and recurrent state are made anew for each epoch from
    `(seed, epoch, part)`, so a runner that died can be replaced and asked again,
    and gives the same data.
    """

    @override(EnvRunner)
    def __init__(self, *, config, **kwargs: Any):
        super().__init__(config=config, **kwargs)
        self.worker_index = self.worker_index or 0
        self.curriculum = config.curriculum_object()
        self.task: str = self.curriculum.task_names[0]
        self.env: VectorTask | None = None
        self.module = None
        self.callbacks = [entry() for entry in force_list(config.callbacks_class)]
        self._spaces = shared_spaces(self.curriculum, config.env_options)
        self.make_module()

    # Collecting.

    @override(EnvRunner)
    def sample(
        self,
        *,
        epoch: int,
        part: int = 0,
        task: str | None = None,
        weights: Weights = None,
        epsilon: float | None = None,
    ) -> tuple[list[Chunk], dict[str, Any]]:
        """Collects one part of an epoch, of the given task or the one that is set.

        A run's requests name the task: a runner that died while idle is back before
        anyone notices, and may not have the task of the one it replaces. They also say
        how likely an action is a random one, if the epoch does not tell.

        Returns one stream of rows per environment, rewards scaled for training, and
        what is worth knowing about them.
        """
        self._take(weights)
        if task is not None:
            self.set_task(task)
        began = time.perf_counter()
        if epsilon is None:
            epsilon = self.config.epsilon_at(epoch)
        recorder = self._patiently(
            f"epoch {epoch}, task {self.task!r}",
            lambda attempt: self._record(epoch, part, attempt, epsilon),
        )
        info = recorder.info(time.perf_counter() - began)
        call_back_after_sampling(self, recorder, info)
        streams = recorder.chunks(self.env.reward_scale)
        self._drop_env()
        self.num_env_steps_sampled_lifetime += info["frames"]
        return streams, info

    def _patiently(self, where: str, play: Callable[[int], Played]) -> Played:
        """Makes the environments anew if they fail, where that is wanted.

        `play` is told how often it has been tried before.
        """
        for attempt in range(1 + 3 * bool(self.config.restart_failed_sub_environments)):
            try:
                return play(attempt)
            except Exception as error:
                self._drop_env()
                users = isinstance(error, UserError)
                reason = f"{error}" if users else f"{type(error).__name__}: {error}"
                last = (UserError if users else RuntimeError)(
                    f"Environment failed in {where}: {reason}"
                )
                last.__cause__ = error
        raise last

    def _record(self, epoch: int, part: int, attempt: int, epsilon: float) -> Recorder:
        env = self.make_env()
        steps, envs = self.config.rollout_fragment_length, env.num_envs
        remembers = self.config.remembers_policy
        units = int(env.action_space.n) + 1 if remembers else 0
        recorder = Recorder(steps, envs, env.observation_space.shape, units)
        keys = (epoch, part, attempt)
        policy = ActingPolicy(
            self.module, envs, derive_seed(self.config.seed, "act", *keys)
        )
        rng = derive_rng(self.config.seed, "explore", *keys)
        uniform = rng.integers(env.action_space.n, size=(steps, envs))
        explores = rng.random((steps, envs)) < epsilon

        rows = env.reset(derive_seed(self.config.seed, "env", *keys))
        for step in range(steps):
            actions = uniform[step]
            if epsilon < 1.0:
                chosen = policy(rows.obs, rows.is_first)
                actions = np.where(explores[step], actions, chosen)
                if remembers:
                    known = policy.policy_and_value()
                    recorder.record_policy(step, known, ~explores[step])
            recorder.record(step, rows, actions)
            if step + 1 < steps:
                rows = env.step(actions)
        return recorder

    # Evaluating.

    def evaluate(
        self, *, task: str, epoch: int, episodes: int, weights: Weights = None
    ) -> EpisodeScores:
        """Plays whole episodes of one task with the stochastic policy, raw scores.

        The random streams depend on the task and the epoch, not on the runner, so it
        does not matter who plays which task.
        """
        self._take(weights)
        scores = self._patiently(
            f"the evaluation of epoch {epoch}, task {task!r}",
            lambda attempt: self._evaluate(task, epoch, episodes, attempt),
        )
        if scores is None:
            limit = f"{self.config.evaluation_sample_timeout_s:g} s"
            raise UserError(
                f"task {task!r}: {episodes} episodes were not over within {limit} "
                "(evaluation_sample_timeout_s; max_steps_per_evaluated_episode cuts "
                "long ones)"
            )
        return scores

    def _evaluate(
        self, task: str, epoch: int, episodes: int, attempt: int
    ) -> EpisodeScores | None:
        """Returns the scores; None if the episodes take too long."""
        envs = min(episodes, self.config.num_envs_per_evaluation)
        env = self._make_task(task, envs)
        keys = (self.config.seed, "evaluate", epoch, task, *[attempt] * bool(attempt))
        policy = ActingPolicy(self.module, envs, derive_seed(*keys, "act"))
        rng = derive_rng(*keys, "explore")

        def act(rows: Rows) -> np.ndarray:
            # Epoch 0 is evaluated with the random policy, as it is collected with it.
            if epoch == 0:
                return rng.integers(env.action_space.n, size=envs)
            return policy(rows.obs, rows.is_first)

        try:
            return play_episodes(
                env,
                act,
                episodes,
                derive_seed(*keys, "env"),
                self.config.max_steps_per_evaluated_episode,
                self.config.evaluation_sample_timeout_s,
            )
        except TimeoutError:
            return None
        finally:
            env.close()

    # Looking inside.

    def probe(self, *, task: str, epoch: int, weights: Weights = None) -> Arrays:
        """Plays sequences of a task that are never trained on; see `inside`."""
        self._take(weights)
        env = self._make_task(task, SEQUENCES)
        keys = (self.config.seed, "probe", epoch, task)
        policy = ActingPolicy(self.module, SEQUENCES, derive_seed(*keys, "act"))
        try:
            return play_sequences(
                env,
                lambda rows: policy(rows.obs, rows.is_first),
                derive_seed(*keys, "env"),
                derive_rng(*keys, "begins"),
            )
        finally:
            env.close()

    def _take(self, weights: Weights) -> None:
        if weights is not None:
            self.module.set_state(_resolved(weights))

    # What RLlib asks of an env runner.

    def set_task(self, task: str) -> None:
        """Switches to a task of the curriculum; the next epoch is collected on it."""
        self.curriculum.spec(task)
        self.task = task

    @override(EnvRunner)
    def make_env(self) -> VectorTask:
        self._drop_env()
        self.env = self._make_task(self.task, self.config.num_envs_per_env_runner)
        return self.env

    def _make_task(self, task: str, num_envs: int) -> VectorTask:
        suite, spec = self.curriculum.suite, self.curriculum.spec(task)
        env = make_task(suite, spec, num_envs, **self.config.env_options)
        context = EnvContext({"task": task}, worker_index=self.worker_index)
        call_back(self, "on_environment_created", env=env, env_context=context)
        return env

    def _drop_env(self) -> None:
        if self.env is not None:
            self.env.close()
            self.env = None

    @override(EnvRunner)
    def make_module(self) -> None:
        spec = self.config.get_rl_module_spec(spaces=self._spaces, inference_only=True)
        self.module = spec.build()

    @override(EnvRunner)
    def get_spaces(self) -> dict[str, Any]:
        return self._spaces

    @override(EnvRunner)
    def assert_healthy(self) -> None:
        assert self.module is not None

    @override(EnvRunner)
    def get_metrics(self) -> dict:
        return self.metrics.reduce()

    @override(EnvRunner)
    def stop(self) -> None:
        self._drop_env()

    @override(Checkpointable)
    def get_state(self, components=None, *, not_components=None, **kwargs) -> dict:
        state = {TASK: self.task}
        if self._check_component(COMPONENT_RL_MODULE, components, not_components):
            state[COMPONENT_RL_MODULE] = self.module.get_state(inference_only=True)
        return state

    @override(Checkpointable)
    def set_state(self, state: dict | ray.ObjectRef) -> None:
        # RLlib sends weights, and sometimes the state around them, by reference.
        state = _resolved(state)
        if TASK in state:
            self.set_task(state[TASK])
        if COMPONENT_RL_MODULE in state:
            weights = _resolved(state[COMPONENT_RL_MODULE])
            self.module.set_state(weights.get(DEFAULT_MODULE_ID, weights))

    @override(Checkpointable)
    def get_ctor_args_and_kwargs(self) -> tuple[tuple, dict]:
        return (), {"config": self.config}


def _resolved(value: Any) -> Any:
    return ray.get(value) if isinstance(value, ray.ObjectRef) else value
