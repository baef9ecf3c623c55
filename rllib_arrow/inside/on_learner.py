"""One look into the networks, in the learner's own process."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import ray
from PIL import Image
from ray.rllib.core import DEFAULT_MODULE_ID

from rllib_arrow.inside.anatomy import Anatomy, Arrays, Finding
from rllib_arrow.inside.examine import Examiner
from rllib_arrow.inside.probe_set import ProbeSet
from rllib_arrow.ray_private import index_of, untrained_module
from rllib_arrow.seeding import derive_seed

FRAME = 32  # pixels that a frame of a strip has at least


class Seen(NamedTuple):
    """What a look found."""

    plasticity: list[Finding]
    drift: dict[str, list[Finding]]  # by task
    untrained: list[Finding]  # of the new probe set, if there is one
    probe: bytes | None  # the new probe set
    strips: dict[str, bytes]  # PNG files by task


def look(
    learner: Any,
    *,
    anatomy: Anatomy,
    recent: ray.ObjectRef,
    probes: Mapping[str, bytes],
    ended: tuple[str, Arrays] | None,
    drawn: Sequence[str],
) -> Seen | None:
    """Returns what the first learner sees; all have the same networks.

    Args:
        learner: Whose module is looked into.
        anatomy: What the module's parts are.
        recent: Rows of replay, for plasticity.
        probes: Probe sets of the tasks before, by task.
        ended: The task whose training has just ended, and rows of it.
        drawn: The tasks of which strips are drawn.
    """
    if index_of(learner) != 0:
        return None
    start = untrained_module(learner)[DEFAULT_MODULE_ID]
    seed = derive_seed(learner.config.seed, "inside")
    examiner = Examiner(anatomy, learner.module[DEFAULT_MODULE_ID], start, seed)
    sets = {task: ProbeSet.from_bytes(content) for task, content in probes.items()}
    untrained, content = [], None
    if ended is not None:
        task, rows = ended
        sets[task] = examiner.probe_set(rows)
        untrained, content = examiner.untrained(sets[task]), sets[task].to_bytes()
    pictures = {task: examiner.strip(sets[task]) for task in drawn}
    return Seen(
        plasticity=list(examiner.plasticity(ray.get(recent))),
        drift={task: examiner.drift(probe) for task, probe in sets.items()},
        untrained=untrained,
        probe=content,
        strips={
            task: _png(pixels, sets[task].rows["obs"].shape[2])
            for task, pixels in pictures.items()
            if pixels is not None
        },
    )


def _png(pixels: np.ndarray, side: int) -> bytes:
    zoom = max(1, FRAME // side)
    file = io.BytesIO()
    large = pixels.repeat(zoom, axis=0).repeat(zoom, axis=1)
    Image.fromarray(large).save(file, format="PNG")
    return file.getvalue()
