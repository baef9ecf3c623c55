"""The steps through sequences and dreams, by `sequences.cpp` and `dream.cpp`.

They are those of `models/unroll.py` and of `DV3RLModule.dream`, for the paper's model.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from rllib_arrow.models.actor_critic import Actor
from rllib_arrow.models.native.build import library, pointer, pointers, threads_for
from rllib_arrow.models.rssm import RSSM
from rllib_arrow.models.size import ModelSize
from rllib_arrow.models.unroll import Back, Loops, Trace, Weights


class Sizes(ctypes.Structure):
    """As in `networks.hpp`."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in (
            *("steps", "rows", "groups", "classes", "h", "units"),
            *("actions", "actor_layers", "threads"),
        )
    )


def _sizes(size: ModelSize, steps: int, rows: int, weights: int) -> Sizes:
    return Sizes(
        *(steps, rows, size.latent_groups, size.latent_classes),
        *(size.gru_units, size.mlp_units),
        threads=threads_for(steps * rows * weights),
    )


def native_loops(size: ModelSize) -> Loops:
    """Returns the way through sequences, forth and back."""
    h, units, z = size.gru_units, size.mlp_units, size.latent_units
    weights = 3 * h * (h + units) + units * (h + z)
    code = library()

    def forward(w: Weights, *rows: Tensor) -> Trace:
        steps, batch = rows[2].shape[:2]
        widths = (
            *(h, z, units, 1, 1, units, units, h, h, h, h, h),
            *(units, 1, 1, units, units, z, z),
        )
        trace = Trace(*(w.gru_h.new_empty(steps, batch, n) for n in widths))
        sizes = _sizes(size, steps, batch, weights)
        arrays = pointers(w), pointers(rows), pointers(trace)
        code.unroll_forth(ctypes.byref(sizes), *arrays)
        groups = (size.latent_groups, size.latent_classes)
        return trace._replace(softmax=trace.softmax.unflatten(-1, groups))

    def back(w: Weights, *rows: Tensor) -> Back:
        rows = tuple(part.contiguous() for part in rows)
        steps, batch = rows[2].shape[:2]
        widths = (units, units, 3 * h, 3 * h, units, units, z)
        grads = Back(*(w.gru_h.new_empty(steps, batch, n) for n in widths))
        sizes = _sizes(size, steps, batch, weights)
        arrays = pointers(w), pointers(rows), pointers(grads)
        code.unroll_back(ctypes.byref(sizes), *arrays)
        return grads

    return Loops(forward, back)


@torch.no_grad()
def native_dream(
    rssm: RSSM, actor: Actor, starts: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the states of dreams, their starts included, and the actions in them."""
    *hidden, out = actor
    weights = (
        *(tensor for layer in hidden for tensor in layer.parameters()),
        *(out.weight, out.bias),
        *(rssm.input_z.weight, rssm.input_a.weight),
        *(rssm.input_norm.weight, rssm.input_norm.bias),
        *(rssm.gru.weight_ih, rssm.gru.weight_hh, rssm.gru.bias_ih, rssm.gru.bias_hh),
        *(tensor for layer in rssm.prior for tensor in layer.parameters()),
    )
    steps, rows = noise.shape[:2]
    states = starts.new_empty(steps + 1, *starts.shape)
    states[0] = starts
    actions = torch.empty(steps, rows, dtype=torch.int64)
    sizes = _sizes(rssm.size, steps, rows, sum(tensor.numel() for tensor in weights))
    sizes.actions, sizes.actor_layers = out.out_features, rssm.size.mlp_layers
    places = (ctypes.c_void_p(pointer(each)) for each in (noise, states, actions))
    library().dream(ctypes.byref(sizes), pointers(weights), *places)
    return states, actions
