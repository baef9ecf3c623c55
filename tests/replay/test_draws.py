import numpy as np
import pytest

from rllib_arrow.replay.draws import LossTally, Origin
from rllib_arrow.replay.shares import EpochLosses

ORIGINS = [Origin("fifo", (7, 8)), Origin("ltdm", (2, 8)), Origin("fifo", (8, 8))]
LOSSES = np.array([[1.0, 2.0], [30.0, 40.0], [3.0, 7.0]], np.float32)


def test_losses_are_told_by_chunk_by_buffer_and_by_age():
    tally = LossTally(ORIGINS, LOSSES)
    assert tally.by_chunk("fifo") == {7: 1.0, 8: 4.0}
    assert tally.by_chunk("ltdm") == {2: 30.0, 8: 40.0}
    means = EpochLosses(fresh=(2 + 40 + 3 + 7) / 4, fifo=13 / 4, ltdm=35.0)
    assert tally.means(fresh_from=8) == means
    assert tally.means(fresh_from=9).fresh is None


def test_how_new_fresh_chunks_are_is_judged_before_they_are_learned():
    """By their first 16 sequences, whatever was drawn in between."""
    origins = [Origin("fifo", (9, 3)), Origin("ltdm", (2, 9))] * 10
    losses = np.array([[loss, 100.0] for loss in range(20)])
    losses[1::2] = losses[1::2, ::-1]
    assert LossTally(origins, losses).means(9).fresh == np.mean(range(16))


def test_where_nothing_was_drawn_there_is_no_mean():
    assert LossTally(ORIGINS[:1], LOSSES[:1]).means(0).ltdm is None
    assert LossTally([], np.empty((0, 0))).means(0) == (None, None, None)


def test_losses_of_other_sequences_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 2\); .* makes \(3, 2\)"):
        LossTally(ORIGINS, LOSSES[:2])
