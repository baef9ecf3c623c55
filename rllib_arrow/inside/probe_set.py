"""A few hundred rows of a task, and what the networks said of them at its end."""

from __future__ import annotations

import io
from typing import NamedTuple

import numpy as np

from rllib_arrow.inside.anatomy import Arrays


class ProbeSet(NamedTuple):
    """Rows that were never trained on, with questions and answers of `Anatomy`."""

    rows: Arrays
    questions: Arrays
    answers: Arrays

    def to_bytes(self) -> bytes:
        """Returns a compressed `.npz` file, which holds arrays alone."""
        arrays = {
            f"{group}/{name}": array
            for group, named in self._asdict().items()
            for name, array in named.items()
        }
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> ProbeSet:
        """Reads what `to_bytes` returned."""
        groups: dict[str, Arrays] = {name: {} for name in cls._fields}
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            for key in file.files:
                group, _, name = key.partition("/")
                groups[group][name] = file[key]
        return cls(**groups)
