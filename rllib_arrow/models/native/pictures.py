"""Encoder and decoder of pictures, by `pictures.cpp`, as operations of torch.

A stage is five numbers: its kind, the side of the smaller picture, the channels that
come in and go out, and whether a norm and SiLU follow. It has three tensors: weights,
those of the norm, and the bias of the norm, or its own where there is no norm. What it
has not is None for `through_stages` and for C++, and another of its tensors for torch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rllib_arrow.models.native.build import library, pointer, pointers, threads_for

NORM, DOWN, UP = range(3)
FIELDS, TENSORS = 5, 3


class Stage(NamedTuple):
    """As in `pictures.cpp`."""

    kind: int
    side: int
    inputs: int
    outputs: int
    is_normed: int

    @property
    def pixels(self) -> int:
        """Of what comes out."""
        return self.side**2 * (4 if self.kind == UP else 1)

    @property
    def lacks(self) -> int | None:
        """The place of the tensor that it has not."""
        return 0 if self.kind == NORM else None if self.is_normed else 1

    def widths(self) -> tuple[int | None, int | None, int | None]:
        """Numbers per pixel of what the way back needs: before norm, stats, after."""
        before = None if self.kind == NORM else self.outputs
        return (before, 2, self.outputs) if self.is_normed else (before, None, None)


def through_stages(rows: Tensor, stages: Sequence[Stage], tensors: Any) -> Tensor:
    """Takes [N, ...] of numbers, returns [N, pixels, channels] after all stages.

    `tensors` has three for each stage, None for what it has not.
    """
    filled = [
        tensors[TENSORS * i + (2 if stage.lacks == part else part)]
        for i, stage in enumerate(stages)
        for part in range(TENSORS)
    ]
    numbers = [number for stage in stages for number in stage]
    return pictures_forth(rows, numbers, filled)[-1]


def _stages(numbers: Sequence[int]) -> list[Stage]:
    starts = range(0, len(numbers), FIELDS)
    return [Stage(*numbers[i : i + FIELDS]) for i in starts]


def _present(stages: Sequence[Stage], tensors: Sequence[Tensor]) -> Iterator[Any]:
    for i, stage in enumerate(stages):
        for part in range(TENSORS):
            yield None if stage.lacks == part else tensors[TENSORS * i + part]


def _threads(stages: Sequence[Stage], count: int) -> int:
    work = sum(16 * s.side**2 * s.inputs * s.outputs for s in stages)
    return threads_for(count * work)


def _call(name: str, stages: Sequence[Stage], *arguments: Any) -> None:
    numbers = [number for stage in stages for number in stage]
    table = (ctypes.c_int64 * len(numbers))(*numbers)
    getattr(library(), name)(table, ctypes.c_int64(len(stages)), *arguments)


def _all_traces(
    stages: Sequence[Stage], rows: Tensor, kept: Sequence[Tensor]
) -> Iterator[Tensor | None]:
    """Yields three for each stage, None for what there is not."""
    left = iter(kept)
    for stage in stages:
        before, *after = stage.widths()
        yield rows if before is None else next(left)
        yield from (None if width is None else next(left) for width in after)


@torch.library.custom_op("rllib_arrow::pictures_forth", mutates_args=())
def pictures_forth(
    rows: Tensor, stages: Sequence[int], tensors: Sequence[Tensor]
) -> list[Tensor]:
    """Goes through all stages; returns all that the way back needs, the result last."""
    table, kept = _stages(stages), _new_traces(rows, stages, tensors)
    _call(
        "pictures_forth",
        table,
        pointers(_present(table, tensors)),
        ctypes.c_void_p(pointer(rows)),
        ctypes.c_int64(len(rows)),
        pointers(_all_traces(table, rows, kept)),
        ctypes.c_int64(_threads(table, len(rows))),
    )
    return kept


@pictures_forth.register_fake
def _new_traces(
    rows: Tensor, stages: Sequence[int], tensors: Sequence[Tensor]
) -> list[Tensor]:
    return [
        rows.new_empty(len(rows), stage.pixels, width)
        for stage in _stages(stages)
        for width in stage.widths()
        if width is not None
    ]


@torch.library.custom_op("rllib_arrow::pictures_back", mutates_args=())
def pictures_back(
    grad: Tensor,
    rows: Tensor,
    stages: Sequence[int],
    tensors: Sequence[Tensor],
    kept: Sequence[Tensor],
    wants_rows: bool,
) -> list[Tensor]:
    """Returns the gradients of all tensors, then that of the rows, if it is wanted."""
    table, count = _stages(stages), len(rows)
    found = _new_gradients(grad, rows, stages, tensors, kept, wants_rows)
    for each in found[: len(tensors)]:
        each.zero_()
    # Gradients of what comes out of each stage are worked on in place.
    grads = [grad.new_empty(count, stage.pixels, stage.outputs) for stage in table]
    grads[-1].copy_(grad)
    _call(
        "pictures_back",
        table,
        pointers(_present(table, tensors)),
        ctypes.c_void_p(pointer(rows)),
        ctypes.c_int64(count),
        pointers(_all_traces(table, rows, kept)),
        pointers(grads),
        ctypes.c_void_p(pointer(found[-1]) if wants_rows else None),
        pointers(_present(table, found)),
        ctypes.c_int64(_threads(table, count)),
    )
    return found


@pictures_back.register_fake
def _new_gradients(
    grad: Tensor,
    rows: Tensor,
    stages: Sequence[int],
    tensors: Sequence[Tensor],
    kept: Sequence[Tensor],
    wants_rows: bool,
) -> list[Tensor]:
    of = [*tensors, rows] if wants_rows else tensors
    return [torch.empty_like(each) for each in of]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    rows, ctx.stages, tensors = inputs
    ctx.count = len(tensors)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(rows, *tensors, *output)


def _go_back(ctx: Any, grads: list[Tensor | None]) -> tuple[Any, ...]:
    rows, *saved = ctx.saved_tensors
    tensors, kept = saved[: ctx.count], saved[ctx.count :]
    wants_rows = ctx.needs_input_grad[0]
    found = pictures_back(grads[-1], rows, ctx.stages, tensors, kept, wants_rows)
    lacking = _present(_stages(ctx.stages), found)
    return found[-1] if wants_rows else None, None, list(lacking)


pictures_forth.register_autograd(_go_back, setup_context=_remember)
