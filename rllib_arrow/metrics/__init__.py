"""Continual-learning metrics; see docs/metrics.md."""

from rllib_arrow.metrics.continual import (
    SingleTask,
    Value,
    continual_metrics,
    running_metrics,
)
from rllib_arrow.metrics.curve import RunCurve

__all__ = [
    "RunCurve",
    "SingleTask",
    "Value",
    "continual_metrics",
    "running_metrics",
]
