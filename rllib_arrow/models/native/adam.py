"""Steps of torch's Adam, by `adam.cpp`: torch spends most of such a step on calls."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from rllib_arrow.models.native.build import library


class Adam(ctypes.Structure):
    """As in `adam.cpp`."""

    _fields_ = tuple(
        (name, ctypes.c_double)
        for name in ("learning_rate", "beta1", "beta2", "eps", "limit")
    )


def native_step(optimizer: torch.optim.Adam, limit: float) -> Tensor:
    """Clips the gradient by its norm, takes the step, returns the norm before.

    The gradient is left as it was clipped, as torch leaves it. The moments are torch's
    own, made by torch with the first step.
    """
    group = optimizer.param_groups[0]
    params, state = group["params"], optimizer.state
    if not state:
        norm = torch.nn.utils.clip_grad_norm_(params, limit)
        optimizer.step()
        return norm
    norm, places = torch.empty(()), []
    for param in params:
        moments, grad = state[param], param.grad
        if grad.stride() != param.stride():
            grad = param.grad = torch.empty_like(param).copy_(grad)
        each = param, grad, moments["exp_avg"], moments["exp_avg_sq"], moments["step"]
        places += [tensor.data_ptr() for tensor in each]
    adam = Adam(group["lr"], *group["betas"], group["eps"], limit)
    library().adam_step(
        ctypes.byref(adam),
        (ctypes.c_void_p * len(places))(*places),
        (ctypes.c_int64 * len(params))(*(param.numel() for param in params)),
        ctypes.c_int64(len(params)),
        ctypes.c_void_p(norm.data_ptr()),
    )
    return norm
