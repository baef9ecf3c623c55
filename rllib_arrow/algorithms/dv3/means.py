"""Means of an epoch's metrics."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

CHECK_EVERY = 50  # updates between looks at the losses: a look waits for the GPU


class Means:
    """Collects metrics and looks at their values only now and then."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.count = 0
        self._names: list[str] = []
        self._rows: list[Tensor] = []
        self._sums: np.ndarray | float = 0.0

    def add(self, metrics: dict[str, Tensor]) -> None:
        """Notes one update's metrics, if any, without waiting for their values."""
        if not metrics:
            return
        self._names = list(metrics)
        self._rows.append(torch.stack([value.detach() for value in metrics.values()]))
        self.count += 1
        if len(self._rows) == CHECK_EVERY:
            self._check()

    def result(self) -> dict[str, float]:
        """Returns the means; empty if there was no update."""
        if self._rows:
            self._check()
        if self.count == 0:
            return {}
        means = np.asarray(self._sums) / self.count
        return dict(zip(self._names, means.tolist(), strict=True))

    def _check(self) -> None:
        rows = torch.stack(self._rows).double().cpu().numpy()
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            row, column = bad[0]
            update = self.count - len(rows) + row
            raise FloatingPointError(
                f"{self._names[column]} ({rows[row, column]}) is not finite at update "
                f"{update} of epoch {self.epoch}: lower the learning rate."
            )
        self._sums = self._sums + rows.sum(0)
        self._rows.clear()
