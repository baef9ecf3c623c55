"""Calls to env runners that survive the death of a runner."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from rllib_arrow.ray_private import actors_of

PATIENCE_S = 120.0  # until a runner that died is back


class RunnerCalls:
    """One method, called once per request, spread over the remote runners of a group.

    A request says all the runner needs, so one whose runner died or hung is simply
    asked again, of whichever runner is well.
    """

    def __init__(
        self,
        group: EnvRunnerGroup,
        restore: Callable[[EnvRunnerGroup], Any],
        method: str,
        requests: list[dict[str, Any]],
        *,
        report: Callable[[str], None],
        num_returns: int = 1,
        timeout_s: float | None = None,
        timeout_name: str = "sample_timeout_s",
        attempts: int = 5,
    ):
        self._manager = actors_of(group)
        self._restore = lambda: restore(group)
        self._method, self._requests, self._report = method, requests, report
        self._num_returns, self._timeout_s = num_returns, timeout_s
        self._timeout_name, self._attempts = timeout_name, attempts
        healthy = self._manager.healthy_actor_ids() or self._recover()
        self._calls = [
            self._ask(healthy[i % len(healthy)], request)
            for i, request in enumerate(requests)
        ]

    def are_over(self) -> bool:
        """Whether all calls have ended, well or not; does not wait."""
        refs = [refs[-1] for _, refs in self._calls]
        ended, _ = ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
        return len(ended) == len(refs)

    def results(self) -> list[Any]:
        """Waits for all calls; returns their results in the order of the requests.

        With several returns per call, all but the last stay object references.
        """
        return [self._finish(i) for i in range(len(self._requests))]

    def _ask(self, actor_id: int, request: dict[str, Any]) -> tuple[int, list]:
        actor = self._manager.actors()[actor_id]
        call = getattr(actor, self._method).options(num_returns=self._num_returns)
        refs = call.remote(**request)
        return actor_id, refs if isinstance(refs, list) else [refs]

    def _finish(self, i: int) -> Any:
        for _ in range(self._attempts):
            actor_id, refs = self._calls[i]
            try:
                last = ray.get(refs[-1], timeout=self._timeout_s)
                return last if self._num_returns == 1 else (*refs[:-1], last)
            except GetTimeoutError:
                self._report(
                    f"env runner {actor_id} gave no answer to {self._method!r} within "
                    f"{self._timeout_s:.0f} s ({self._timeout_name}); it is replaced "
                    "and its work done again, nothing is lost"
                )
                ray.kill(self._manager.actors()[actor_id], no_restart=False)
            except RayActorError:
                self._report(
                    f"env runner {actor_id} died in {self._method!r}; its work is done "
                    "again, nothing is lost"
                )
            self._manager.set_actor_state(actor_id, healthy=False)
            healthy = self._recover()
            asked = actor_id if actor_id in healthy else healthy[i % len(healthy)]
            self._calls[i] = self._ask(asked, self._requests[i])
        raise RuntimeError(
            f"Env runner call {self._method!r} failed {self._attempts} times in a row."
        )

    def _recover(self) -> list[int]:
        """Waits until at least one runner is well; Ray restarts those that died."""
        until = time.monotonic() + PATIENCE_S
        while True:
            self._restore()
            healthy = self._manager.healthy_actor_ids()
            if healthy:
                return healthy
            if time.monotonic() > until:
                raise RuntimeError(f"No env runner is back after {PATIENCE_S:.0f} s.")
            time.sleep(0.5)
