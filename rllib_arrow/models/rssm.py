"""The recurrent state-space model: h is deterministic, z categorical.

    h[t] = GRU(h[t-1], z[t-1], a[t-1])       z[t] ~ posterior(h[t], obs[t])
                                             z[t] ~ prior(h[t]) in a dream

Where a row is an episode's first, h, z and the action before it count as zero (or as
learned, see `size.Variant`). All sequences are time-major here: [T, B, ...].
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from rllib_arrow.models.distributions import one_hot, sample_one_hot, unimix_probs
from rllib_arrow.models.layers import MLP, NormGRUCell, NormSiLU, initialise
from rllib_arrow.models.size import PAPER, ModelSize, Variant
from rllib_arrow.models.unroll import Loops, Unroll, Weights


class Posterior(NamedTuple):
    """What a sequence of observations says about the hidden states."""

    h: Tensor  # [T, B, gru_units]
    z: Tensor  # [T, B, latent_units], one-hot in each group
    probs: Tensor  # [T, B, groups, classes]

    @property
    def states(self) -> Tensor:
        """[T, B, state_units]."""
        return torch.cat([self.h, self.z], dim=-1)


class RSSM(nn.Module):
    """One step, and whole sequences of steps."""

    def __init__(
        self,
        size: ModelSize,
        embed_units: int,
        num_actions: int,
        variant: Variant = PAPER,
    ) -> None:
        super().__init__()
        self.size = size
        self.variant = variant
        units = size.mlp_units
        # A linear layer over [z, one-hot a] in two parts: the action's part is a
        # look-up, made for all steps at once.
        self.input_z = nn.Linear(size.latent_units, units, bias=False)
        self.input_a = nn.Embedding(num_actions, units)
        self.input_norm = NormSiLU(units)
        cell = NormGRUCell if variant.gru_norm else nn.GRUCell
        self.gru = cell(units, size.gru_units)
        # Likewise the posterior's first layer over [h, embedding].
        self.posterior_h = nn.Linear(size.gru_units, units, bias=False)
        # With a skip, the embedding has a part in the logits too.
        skipped = size.latent_units if variant.posterior_skip else 0
        self.posterior_x = nn.Linear(embed_units, units + skipped, bias=False)
        self.posterior_norm = NormSiLU(units)
        self.posterior_out = nn.Linear(units, size.latent_units)
        initialise(self)
        nn.init.normal_(self.input_a.weight, std=units**-0.5)
        self.prior = MLP(size.gru_units, units, 1, size.latent_units)
        if variant.learned_initial_state:
            self.initial_h = nn.Parameter(torch.zeros(size.gru_units))

    def recur(self, h: Tensor, z: Tensor, action_part: Tensor) -> Tensor:
        """Returns the next h; `action_part` is `input_a` of the action taken.

        z is one-hot in each group, or zero where nothing is carried over.
        """
        x = torch.addmm(action_part, z, self.input_z.weight.t())
        return self.gru(self.input_norm(x), h)

    def infer(self, h: Tensor, image_part: Tensor) -> Tensor:
        """Returns posterior probabilities [B, groups, classes].

        `image_part` is `posterior_x` of the embedded observation.
        """
        image_part, *skip = image_part.split(
            [self.size.mlp_units, self.size.latent_units]
            if self.variant.posterior_skip
            else [self.size.mlp_units],
            dim=-1,
        )
        x = torch.addmm(image_part, h, self.posterior_h.weight.t())
        logits = self.posterior_out(self.posterior_norm(x))
        return self.to_probs(logits + skip[0] if skip else logits)

    def predict(self, h: Tensor) -> Tensor:
        """Returns prior probabilities [..., groups, classes]."""
        return self.to_probs(self.prior(h))

    def to_probs(self, logits: Tensor) -> Tensor:
        """Splits flat logits into groups and mixes in the uniform distribution."""
        shape = (self.size.latent_groups, self.size.latent_classes)
        return unimix_probs(logits.unflatten(-1, shape))

    def observe_step(
        self, h: Tensor, z: Tensor, action_part: Tensor, image_part: Tensor, u: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Takes [B, ...] of one step, returns the next h, z and the posterior."""
        h = self.recur(h, z, action_part)
        probs = self.infer(h, image_part)
        return h, sample_one_hot(probs, u).flatten(1), probs

    def imagine_step(
        self, h: Tensor, z: Tensor, actions: Tensor, u: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Takes [B, ...] of one step and int64 actions, returns the next h and z."""
        h = self.recur(h, z, self.input_a(actions))
        return h, sample_one_hot(self.predict(h), u).flatten(1)

    def initial(self, batch_size: int) -> tuple[Tensor, Tensor]:
        """Returns h and z of zeros."""
        weight = self.input_z.weight
        h = weight.new_zeros(batch_size, self.size.gru_units)
        return h, weight.new_zeros(batch_size, self.size.latent_units)

    def carry(self, h: Tensor, z: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        """Returns h and z where `keep` [B, 1] is 1.0, else the initial state.

        A learned initial state is a learned h and the latents that the prior takes for
        most likely there.
        """
        if not self.variant.learned_initial_state:
            return h * keep, z * keep
        first_h = torch.tanh(self.initial_h).unsqueeze(0)
        probs = self.predict(first_h)
        first_z = one_hot(probs.argmax(-1), probs).flatten(1)
        return torch.lerp(first_h, h, keep), torch.lerp(first_z, z, keep)

    def observe(
        self, embedded: Tensor, actions: Tensor, is_first: Tensor, noise: Tensor
    ) -> Posterior:
        """Runs through sequences that start from the cleared state.

        Args:
            embedded: [T, B, embed_units], the encoded observations.
            actions: int64 [T, B], taken at these observations.
            is_first: bool [T, B].
            noise: uniform [T, B, groups].
        """
        return self.unroll(self.prepare(embedded, actions, is_first), noise)

    def prepare(
        self, embedded: Tensor, actions: Tensor, is_first: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns what can be computed for all steps at once; see `observe`.

        Returns:
            The action's and the observation's part in each step, and 0.0 where nothing
            is carried over into it, [T, B, 1].
        """
        keep_T_B = (~is_first).float().unsqueeze(-1)
        keep_T_B[0] = 0.0  # what came before the first row is not known
        action_parts = self.input_a(actions.roll(1, 0)) * keep_T_B
        image_parts = self.posterior_x(embedded)
        return action_parts.float(), image_parts.float(), keep_T_B

    def unroll(
        self,
        prepared: tuple[Tensor, Tensor, Tensor],
        noise: Tensor,
        loops: Loops | None = None,
    ) -> Posterior:
        """Goes through the steps one after the other, from what `prepare` returns."""
        # Few rows at a time gain nothing from low precision, and lose accuracy.
        with torch.autocast(noise.device.type, enabled=False):
            if self.variant != PAPER:  # whose way back is not written out
                h, z = self.initial(noise.shape[1])
                return self.observe_steps(h, z, *prepared, noise)
            weights = self._step_weights()
            return Posterior(
                *Unroll.apply(loops or Loops(), *prepared, noise, *weights)
            )

    def observe_steps(
        self,
        h: Tensor,
        z: Tensor,
        action_parts: Tensor,
        image_parts: Tensor,
        keep: Tensor,
        noise: Tensor,
    ) -> Posterior:
        """Goes as many steps as there are rows [T, B, ...]."""
        steps = []
        rows = zip(action_parts, image_parts, keep, noise, strict=True)
        for action_part, image_part, keep_t, u in rows:
            h, z = self.carry(h, z, keep_t)
            h, z, probs = self.observe_step(h, z, action_part, image_part, u)
            steps.append((h, z, probs))
        return Posterior(*(torch.stack(part) for part in zip(*steps, strict=True)))

    def _step_weights(self) -> Weights:
        return Weights(
            self.input_z.weight,
            self.input_norm.weight,
            self.input_norm.bias,
            self.gru.weight_ih,
            self.gru.weight_hh,
            self.gru.bias_ih,
            self.gru.bias_hh,
            self.posterior_h.weight,
            self.posterior_norm.weight,
            self.posterior_norm.bias,
            self.posterior_out.weight,
            self.posterior_out.bias,
        )
