"""Continual-learning metrics; see docs/metrics.md."""

from rllib_arrow.metrics.continual import (
    SingleTask,
    Value,
    continual_metrics,
    running_metrics,
)
from rllib_arrow.metrics.curve import Exposure, RunCurve, plan_exposures

__all__ = [
    "Exposure",
    "RunCurve",
    "SingleTask",
    "Value",
    "continual_metrics",
    "plan_exposures",
    "running_metrics",
]
