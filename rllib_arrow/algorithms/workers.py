"""What the driver asks of its learners and runners, and notes of those that died."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.rl_module.rl_module import RLModule
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.annotations import override
from ray.rllib.utils.typing import ModuleID

from rllib_arrow.algorithms import on_learners
from rllib_arrow.algorithms.continual_config import ContinualConfig
from rllib_arrow.algorithms.runner_calls import RunnerCalls
from rllib_arrow.algorithms.within_epoch import EVALUATING, Phase, PhaseTeller
from rllib_arrow.checkpoints.save_and_restore import SealedCheckpoints
from rllib_arrow.evaluation.evaluator import Request
from rllib_arrow.evaluation.protocol import EpisodeScores
from rllib_arrow.inside.anatomy import Arrays
from rllib_arrow.ray_private import storage_of

logger = logging.getLogger(__name__)

EVALUATION_SLACK_S = 60.0


class DrivesWorkers(SealedCheckpoints):
    """The driver of learners and env runners, which are actors or in its process."""

    config: ContinualConfig
    task: str | None

    @override(Algorithm)
    def setup(self, config: ContinualConfig) -> None:
        self._weights: ray.ObjectRef | None = None
        self._recoveries: list[str] = []
        self.teller = PhaseTeller(storage_of(self))
        super().setup(config)

    def phase(self, doing: str) -> Phase:
        """Returns what the run is doing in the epoch under way."""
        total = self.curriculum.total_epochs
        return Phase(str(self.task), self.iteration + 1, total, doing)

    # Learners.

    def weights(self) -> ray.ObjectRef:
        """Returns a reference to what a runner needs to act as the policy stands."""
        if self._weights is None:
            self._weights = self.call_learners(on_learners.put_acting_weights)[0]
        return self._weights

    @override(SealedCheckpoints)
    def forget_weights(self) -> None:
        """Has `weights` ask the learners again: theirs have changed."""
        self._weights = None

    def call_learners(self, function: Callable[[Learner], Any]) -> list[Any]:
        """Returns what the function gives on each learner, or raises its error."""
        results = [call.get() for call in self.learner_group.foreach_learner(function)]
        for error in (r for r in results if isinstance(r, Exception)):
            raise error
        return results

    @override(Algorithm)
    def get_module(self, module_id: ModuleID = DEFAULT_MODULE_ID) -> RLModule | None:
        """Returns the module that acts, with the weights learned so far."""
        module = super().get_module(module_id)
        if module is not None and module_id == DEFAULT_MODULE_ID:
            module.set_state(ray.get(self.weights()))
            return module
        return None

    # Runners.

    def call_runners(
        self,
        group: EnvRunnerGroup,
        method: str,
        requests: list[dict[str, Any]],
        **options: Any,
    ) -> RunnerCalls:
        """Asks the remote runners of a group; one that dies is asked again."""
        return RunnerCalls(
            group,
            self._recover,
            method,
            requests,
            report=self.note_recovery,
            **options,
        )

    def play_here(self, requests: list[Request]) -> list[EpisodeScores]:
        """Plays the episodes asked for in this process."""
        runner = self.eval_env_runner or self.env_runner
        self.teller.tell(self.phase(EVALUATING))
        return [runner.evaluate(**request) for request in requests]

    def play_beside(self, requests: list[Request]) -> RunnerCalls | None:
        """Has the evaluation runners play, if there are any."""
        group = self.eval_env_runner_group
        if group is None or group.num_remote_env_runners() == 0:
            return None
        name = "evaluation_sample_timeout_s"
        limit = getattr(self.config, name)
        # The runner itself keeps the limit, unless it hangs inside a step.
        slack_s = None if limit is None else limit + EVALUATION_SLACK_S
        return self.call_runners(
            group,
            "evaluate",
            requests,
            timeout_s=slack_s,
            timeout_name=name,
            attempts=2,
        )

    def play_probe(self, task: str, epoch: int) -> Arrays:
        """Returns rows of a task, played by the policy as it stands."""
        request = {"task": task, "epoch": epoch, "weights": self.weights()}
        if self.config.num_env_runners == 0:
            return self.env_runner.probe(**request)
        limit = self.config.sample_timeout_s
        [rows] = self.call_runners(
            self.env_runner_group, "probe", [request], timeout_s=limit
        ).results()
        return rows

    # Faults.

    @override(SealedCheckpoints)
    def note_recovery(self, line: str) -> None:
        """Keeps a line on what died and was replaced, for the epoch's results."""
        logger.warning("Epoch %d: %s.", self.iteration, line)
        self._recoveries.append(line)

    def take_recoveries(self) -> str:
        """Returns the lines kept since it was last asked, as one."""
        lines, self._recoveries = "; ".join(self._recoveries), []
        return lines

    def _recover(self, group: EnvRunnerGroup) -> None:
        """Brings runners that Ray restarted back into work, as RLlib's epochs do."""
        restored = self.restore_env_runners(group)
        if restored:
            evaluates = group is self.eval_env_runner_group
            self._make_on_env_runners_recreated_callbacks(
                config=self.evaluation_config if evaluates else self.config,
                env_runner_group=group,
                restored_env_runner_indices=restored,
            )
