"""Whole updates as CUDA graphs: recorded once, then one launch instead of thousands.

What an update needs for that: fixed shapes, no look at a value, no new constant from
the host, a generator that the graph knows, and an optimiser whose step count lives on
the device. A recording reads and writes the tensors it was made with, so inputs are
copied in, results are copied out, and it is thrown away when optimiser states are
replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

logger = logging.getLogger(__name__)

WARM_UP = 3  # updates before recording: libraries choose their kernels in the first

Batch = dict[str, Tensor]
Recorder = Callable[[Callable[[Batch], Any], Batch, torch.Generator], Any]


def record(
    update: Callable[[Batch], Any], batch: Batch, generator: torch.Generator
) -> tuple[Any, Callable[[], None]]:
    """Records an update on a GPU; returns its results' place and how to run it."""
    stream, before = torch.cuda.current_stream(), generator.clone_state()
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    try:
        # The thread that brings the next minibatches may go on allocating meanwhile.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            results = update(batch)
    except BaseException:
        # A recording that fails to end leaves its stream and generator in place.
        torch.cuda.set_stream(stream)
        generator.graphsafe_set_state(before)
        raise
    return results, graph.replay


def run_aside(update: Callable[[Batch], Any], batch: Batch) -> Any:
    """Runs an update on a stream of its own, as recording does."""
    current, aside = torch.cuda.current_stream(), torch.cuda.Stream()
    aside.wait_stream(current)
    with torch.cuda.stream(aside):
        results = update(batch)
    current.wait_stream(aside)
    return results


class RecordedUpdate:
    """Runs an update as it stands a few times, then from a recording.

    Where it cannot be recorded, it goes on as it stands: nothing of a recording runs
    before it is whole.
    """

    def __init__(
        self,
        update: Callable[[Batch], Any],
        generator: torch.Generator,
        record: Recorder = record,
        warm_up: Callable[[Callable[[Batch], Any], Batch], Any] = run_aside,
    ) -> None:
        self._update = update
        self._warm_up = warm_up
        self._generator = generator
        self._record = record
        self._seen = 0
        self._can_record = True
        self._replay: Callable[[], None] | None = None

    def __call__(self, batch: Batch) -> Any:
        """Takes one update; the results are copies that stay as they are."""
        self._seen += 1
        if self._seen <= WARM_UP:
            return self._warm_up(self._update, batch)
        if not self._can_record:
            return self._update(batch)
        if self._replay is None:
            self._inputs = {key: value.clone() for key, value in batch.items()}
            try:
                self._results, self._replay = self._record(
                    self._update, self._inputs, self._generator
                )
            except RuntimeError as error:
                line = " ".join(str(error).split())
                logger.warning("No CUDA graph, updates stay slower: %s", line)
                self._can_record = False
                return self._update(batch)
        else:
            for key, value in batch.items():
                self._inputs[key].copy_(value, non_blocking=True)
        self._replay()
        return pytree.tree_map_only(Tensor, Tensor.clone, self._results)
