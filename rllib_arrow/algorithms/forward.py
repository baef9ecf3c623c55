"""RLlib's forward methods for modules that act with `act`."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.core.columns import Columns
from torch import Tensor

IS_FIRST = "is_first"
GENERATOR = "generator"


class ForwardByActing:
    """Gives a module with `act` RLlib's `forward_inference` and `forward_exploration`.

    A batch has `obs`, uint8 [B, H, W, C] or [B, T, H, W, C], and for a module with
    memory `state_in`, as `get_initial_state` gives it with B in front. It may have

    - `is_first`, bool [B] or [B, T]: where an episode begins. Without it, one begins
      where `state_in` is an initial state;
    - `actions`, int [B] or [B, T]: what is really played, if not the actions returned;
    - `generator`: where the draws come from; torch's own stream, if it is left out.

    Back come `actions`, `action_dist_inputs` (logits) and `state_out`.
    """

    # Names of what `act` carries from step to step; the last is the previous action,
    # and below zero in an initial state.
    state_keys: tuple[str, ...] = ()

    def action_logits(self, obs: Tensor, state: tuple[Tensor, ...]) -> Tensor:
        """Returns logits [N, actions], given the frames and the state after `act`."""
        raise NotImplementedError

    def get_initial_state(self) -> dict[str, Tensor]:
        """Returns the state of one environment before its first step."""
        values = self.initial_state(1)
        state = {k: v[0] for k, v in zip(self.state_keys, values, strict=True)}
        if state:
            action = self.state_keys[-1]
            state[action] = torch.full_like(state[action], -1)
        return state

    def _forward_inference(
        self, batch: dict[str, Any], greedy: bool = False, **kwargs: Any
    ) -> dict[str, Any]:
        """Acts as in an evaluation: draws from the policy, or takes its likeliest."""
        return self._forward_acting(batch, greedy)

    def _forward_exploration(
        self, batch: dict[str, Any], **kwargs: Any
    ) -> dict[str, Any]:
        """Acts as while collecting: draws from the policy."""
        return self._forward_acting(batch, greedy=False)

    @torch.no_grad()
    def _forward_acting(self, batch: dict[str, Any], greedy: bool) -> dict[str, Any]:
        device = next(self.parameters()).device
        columns = {
            key: torch.as_tensor(batch[key], device=device)
            for key in (Columns.OBS, Columns.ACTIONS, IS_FIRST)
            if key in batch
        }
        has_time = columns[Columns.OBS].dim() == 5
        if not has_time:
            columns = {key: value.unsqueeze(1) for key, value in columns.items()}
        generator = batch.get(GENERATOR)
        actions, logits, state = self._act_along(
            columns,
            self._state_in(batch, device),
            _new_generator(device) if generator is None else generator,
            greedy,
        )
        return {
            Columns.ACTIONS: actions if has_time else actions[:, 0],
            Columns.ACTION_DIST_INPUTS: logits if has_time else logits[:, 0],
            Columns.STATE_OUT: dict(zip(self.state_keys, state, strict=True)),
        }

    def _act_along(
        self,
        columns: dict[str, Tensor],
        state: tuple[Tensor, ...],
        generator: torch.Generator,
        greedy: bool,
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Acts on [B, T]; returns actions, logits and the state after the last step."""
        obs, played = columns[Columns.OBS], columns.get(Columns.ACTIONS)
        is_first = torch.zeros(obs.shape[:2], dtype=torch.bool, device=obs.device)
        is_first |= columns.get(IS_FIRST, is_first)
        if state:
            is_first[:, 0] |= state[-1] < 0
            state = (*state[:-1], state[-1].clamp(min=0))
        all_actions, all_logits = [], []
        for t in range(obs.shape[1]):
            actions, state = self.act(obs[:, t], state, is_first[:, t], generator)
            all_logits.append(self.action_logits(obs[:, t], state))
            all_actions.append(all_logits[-1].argmax(-1) if greedy else actions)
            if state:
                before = all_actions[-1] if played is None else played[:, t]
                state = (*state[:-1], before)
        return torch.stack(all_actions, 1), torch.stack(all_logits, 1), state

    def _state_in(
        self, batch: dict[str, Any], device: torch.device
    ) -> tuple[Tensor, ...]:
        given = batch.get(Columns.STATE_IN) or {}
        if self.state_keys and not given:
            start = self.get_initial_state()
            copies = len(batch[Columns.OBS])
            given = {k: v.expand(copies, *v.shape) for k, v in start.items()}
        return tuple(torch.as_tensor(given[k], device=device) for k in self.state_keys)


def _new_generator(device: torch.device) -> torch.Generator:
    """Returns a generator seeded by torch's own stream (`torch.manual_seed`)."""
    return torch.Generator(device).manual_seed(int(torch.randint(2**62, ())))
