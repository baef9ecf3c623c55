"""Continual-learning metrics; see docs/metrics.md."""
