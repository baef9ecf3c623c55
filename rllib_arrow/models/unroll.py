"""The RSSM over whole sequences as one step of differentiation.

Left to autograd, 32 small steps leave a graph of some thousand nodes, and every weight
gets 32 small gradients that are added up one by one. Here the steps back are written
out, and each weight's gradient is one matrix product over all steps. The arithmetic is
that of `RSSM.observe_step`; the tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rllib_arrow.models.distributions import UNIMIX, one_hot, sample_index
from rllib_arrow.models.layers import NORM_EPS

aten = torch.ops.aten


class Weights(NamedTuple):
    """The weights a step uses, in the order of their use."""

    input_z: Tensor
    input_norm: Tensor
    input_norm_bias: Tensor
    gru_x: Tensor
    gru_h: Tensor
    gru_x_bias: Tensor
    gru_h_bias: Tensor
    posterior_h: Tensor
    posterior_norm: Tensor
    posterior_norm_bias: Tensor
    posterior_out: Tensor
    posterior_out_bias: Tensor


class Trace(NamedTuple):
    """What the way back needs of every step; [T, B, ...] once stacked."""

    h_before: Tensor
    z_before: Tensor
    x: Tensor  # the layer over z and action, before its norm
    x_mean: Tensor
    x_scale: Tensor
    x_normed: Tensor
    x_out: Tensor
    reset: Tensor  # the GRU's gates and candidate
    update: Tensor
    candidate: Tensor
    candidate_h: Tensor  # the candidate's part from h, before the reset gate
    h: Tensor
    y: Tensor  # the posterior's hidden layer, before its norm
    y_mean: Tensor
    y_scale: Tensor
    y_normed: Tensor
    y_out: Tensor
    softmax: Tensor
    z: Tensor


def norm_silu(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """Returns mean, 1 / deviation, the normed x and its SiLU."""
    normed, mean, scale = torch.native_layer_norm(
        x, weight.shape, weight, bias, NORM_EPS
    )
    return mean, scale, normed, torch.nn.functional.silu(normed)


def step(
    w: Weights, h: Tensor, z: Tensor, action_part: Tensor, image_part: Tensor, u: Tensor
) -> Trace:
    """Goes one step forward; shapes as in `RSSM.observe_step`."""
    x = torch.addmm(action_part, z, w.input_z.t())
    x_trace = norm_silu(x, w.input_norm, w.input_norm_bias)
    from_x = torch.addmm(w.gru_x_bias, x_trace[-1], w.gru_x.t())
    from_h = torch.addmm(w.gru_h_bias, h, w.gru_h.t())
    units = h.shape[1]
    gates_x, candidate_x = from_x.split([2 * units, units], 1)
    gates_h, candidate_h = from_h.split([2 * units, units], 1)
    reset, update = (gates_x + gates_h).sigmoid_().chunk(2, 1)
    candidate = torch.addcmul(candidate_x, reset, candidate_h).tanh_()
    new_h = torch.lerp(candidate, h, update)
    y = torch.addmm(image_part, new_h, w.posterior_h.t())
    y_trace = norm_silu(y, w.posterior_norm, w.posterior_norm_bias)
    logits = torch.addmm(w.posterior_out_bias, y_trace[-1], w.posterior_out.t())
    softmax = torch.softmax(logits.unflatten(1, (u.shape[1], -1)), -1)
    new_z = one_hot(sample_index(mix(softmax), u), softmax).flatten(1)
    return Trace(
        *(h, z, x, *x_trace, reset, update, candidate, candidate_h),
        *(new_h, y, *y_trace, softmax, new_z),
    )


def mix(softmax: Tensor) -> Tensor:
    """Mixes in the uniform distribution."""
    return softmax * (1.0 - UNIMIX) + UNIMIX / softmax.shape[-1]


class Unroll(torch.autograd.Function):
    """Takes sequences and weights, returns h, z and posterior probabilities."""

    @staticmethod
    def forward(
        ctx: Any,
        loops: Loops,
        action_parts: Tensor,
        image_parts: Tensor,
        keep: Tensor,
        noise: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        w = Weights(*weights)
        h = keep.new_zeros(keep.shape[1], w.gru_h.shape[1])
        z = keep.new_zeros(keep.shape[1], w.input_z.shape[1])
        trace = loops.forward(w, h, z, keep, action_parts, image_parts, noise)
        ctx.loops = loops
        ctx.save_for_backward(keep, *trace, *weights)
        return trace.h, trace.z, mix(trace.softmax)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_h: Tensor, grad_z: Tensor, grad_probs: Tensor
    ) -> tuple[Tensor | None, ...]:
        keep, *saved = ctx.saved_tensors
        trace, w = Trace(*saved[: len(Trace._fields)]), Weights(*saved[-12:])
        # Straight-through: what reaches a draw reaches its probabilities.
        grad_probs = grad_probs + grad_z.view_as(grad_probs)
        dh, dz = torch.zeros_like(grad_h[0]), torch.zeros_like(grad_probs[0])
        back = ctx.loops.back(w, dh, dz, keep, grad_h, grad_probs, *trace)
        return None, back.x, back.y, None, None, *weight_gradients(w, trace, back)


def steps_forward(
    w: Weights,
    h: Tensor,
    z: Tensor,
    keep: Tensor,
    action_parts: Tensor,
    image_parts: Tensor,
    noise: Tensor,
) -> Trace:
    """Goes as many steps forward as there are rows [T, B, ...]."""
    steps = []
    for keep_t, *inputs in zip(keep, action_parts, image_parts, noise, strict=True):
        steps.append(step(w, h * keep_t, z * keep_t, *inputs))
        h, z = steps[-1].h, steps[-1].z
    return Trace(*(torch.stack(part) for part in zip(*steps, strict=True)))


def steps_back(w: Weights, dh: Tensor, dz: Tensor, *rows: Tensor) -> Back:
    """Goes back through rows [T, B, ...]: keep, gradients of h and probs, the trace."""
    steps = []
    by_step = zip(*(part.unbind() for part in rows), strict=True)
    for keep_t, grad_h_t, grad_probs_t, *now in reversed(list(by_step)):
        grads, dh, dz = step_back(w, Trace(*now), grad_h_t + dh, grad_probs_t + dz)
        dh, dz = dh * keep_t, (dz * keep_t).view_as(grad_probs_t)
        steps.append(grads)
    return Back(*(torch.stack(part[::-1]) for part in zip(*steps, strict=True)))


class Back(NamedTuple):
    """Gradients at the places of a step where weights come in."""

    x: Tensor
    x_normed: Tensor
    from_x: Tensor
    from_h: Tensor
    y: Tensor
    y_normed: Tensor
    logits: Tensor


def step_back(
    w: Weights, now: Trace, dh: Tensor, dprobs: Tensor
) -> tuple[Back, Tensor, Tensor]:
    """Goes one step back; returns also the gradients of h and z before the step."""
    logits = aten._softmax_backward_data(
        dprobs * (1.0 - UNIMIX), now.softmax, -1, dprobs.dtype
    ).flatten(1)
    y_normed = aten.silu_backward(logits @ w.posterior_out, now.y_normed)
    y = norm_back(y_normed, now.y, now.y_mean, now.y_scale, w.posterior_norm)
    dh = torch.addmm(dh, y, w.posterior_h)
    kept = dh * now.update
    dcandidate = aten.tanh_backward(dh - kept, now.candidate)
    dupdate = aten.sigmoid_backward(dh * (now.h_before - now.candidate), now.update)
    dreset = aten.sigmoid_backward(dcandidate * now.candidate_h, now.reset)
    from_x = torch.cat([dreset, dupdate, dcandidate], 1)
    from_h = torch.cat([dreset, dupdate, dcandidate * now.reset], 1)
    dh_before = torch.addmm(kept, from_h, w.gru_h)
    x_normed = aten.silu_backward(from_x @ w.gru_x, now.x_normed)
    x = norm_back(x_normed, now.x, now.x_mean, now.x_scale, w.input_norm)
    back = Back(x, x_normed, from_x, from_h, y, y_normed, logits)
    return back, dh_before, x @ w.input_z


def norm_back(
    grad: Tensor, x: Tensor, mean: Tensor, scale: Tensor, weight: Tensor
) -> Tensor:
    """Returns the gradient of a layer norm's input."""
    return aten.native_layer_norm_backward(
        grad, x, weight.shape, mean, scale, weight, weight, [True, False, False]
    )[0]


def weight_gradients(w: Weights, trace: Trace, back: Back) -> tuple[Tensor, ...]:
    """Returns the gradients of all weights, in order, over all steps at once."""

    def product(grad: Tensor, inputs: Tensor) -> Tensor:
        return grad.flatten(0, 1).t() @ inputs.flatten(0, 1)

    def norm(grad: Tensor, x: Tensor, mean: Tensor, scale: Tensor) -> list[Tensor]:
        units, mask = w.input_norm.shape, [False, True, True]
        norm_w = w.input_norm
        return aten.native_layer_norm_backward(
            grad, x, units, mean, scale, norm_w, norm_w, mask
        )[1:]

    return (
        product(back.x, trace.z_before),
        *norm(back.x_normed, trace.x, trace.x_mean, trace.x_scale),
        product(back.from_x, trace.x_out),
        product(back.from_h, trace.h_before),
        back.from_x.sum((0, 1)),
        back.from_h.sum((0, 1)),
        product(back.y, trace.h),
        *norm(back.y_normed, trace.y, trace.y_mean, trace.y_scale),
        product(back.logits, trace.y_out),
        back.logits.sum((0, 1)),
    )


class Loops(NamedTuple):
    """How the steps are gone through: as they stand, or in C++ (`native/loops.py`)."""

    forward: Callable[..., Trace] = steps_forward
    back: Callable[..., Back] = steps_back
