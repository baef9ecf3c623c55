"""Minibatches of one epoch, numbered, and given out in parts."""

from __future__ import annotations

from collections.abc import Callable

from rllib_arrow.replay.draws import Draw, Origin


class NumberedMinibatches:
    """Draws minibatches in the order of their numbers, whoever asks first.

    Args:
        draw: Draws the next minibatch, given its size and its sequences' length.
    """

    def __init__(self, draw: Callable[[int, int], Draw]):
        self.origins: list[Origin] = []  # of all drawn so far
        self._draw = draw
        self._shape: tuple[int, int, int] | None = None
        self._unfetched: dict[int, tuple[Draw, set[int]]] = {}

    def fetch(
        self, index: int, shard: int, num_shards: int, batch_size: int, length: int
    ) -> Draw:
        """Returns one learner's part of minibatch number `index`, once.

        Args:
            index: Any minibatch of which this shard has not been fetched yet.
            shard: Which of the `num_shards` equal parts.
            num_shards: How many learners share a minibatch.
            batch_size: Sequences in the whole minibatch.
            length: Rows of a sequence.
        """
        self._check(shard, num_shards, batch_size, length)
        self.draw_up_to(index + 1, num_shards, batch_size, length)
        draw, missing = self._unfetched.get(index, (None, ()))
        if shard not in missing:
            raise ValueError(
                f"Shard {shard} of minibatch {index} has been fetched before; each is "
                "given out once."
            )
        missing.discard(shard)
        if not missing:
            del self._unfetched[index]
        share = batch_size // num_shards
        return draw.part(shard * share, (shard + 1) * share)

    def draw_up_to(
        self, count: int, num_shards: int, batch_size: int, length: int
    ) -> None:
        """Draws those of the first `count` minibatches that are not drawn yet."""
        while len(self.origins) < count:
            draw = self._draw(batch_size, length)
            self._unfetched[len(self.origins)] = (draw, set(range(num_shards)))
            self.origins.append(draw.origin)

    def _check(self, shard: int, num_shards: int, batch_size: int, length: int) -> None:
        if batch_size % num_shards:
            raise ValueError(
                f"batch_size ({batch_size}) must be divisible by num_shards "
                f"({num_shards})."
            )
        if not 0 <= shard < num_shards:
            raise ValueError(f"shard ({shard}) must be in [0, {num_shards}).")
        shape = (num_shards, batch_size, length)
        # Minibatches that nobody has asked for yet are drawn too, so all are alike.
        if self._shape not in (None, shape):
            raise ValueError(
                f"(num_shards, batch_size, length) = {shape} differs from the first "
                f"call's {self._shape}; call begin before changing them."
            )
        self._shape = shape
