"""The replay of ARROW as one of RLlib's replay buffers."""

from __future__ import annotations

from ray.rllib.utils.replay_buffers.base import ReplayBufferInterface

from rllib_arrow.replay.two_buffers import TwoBufferReplay


class AugmentedReplay(TwoBufferReplay, ReplayBufferInterface):
    """A `TwoBufferReplay` for all who have loaded RLlib; the replay actor has not."""
