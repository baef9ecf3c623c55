"""How far an epoch is, told while it is under way."""

from types import SimpleNamespace

import ray

from rllib_arrow.algorithms import within_epoch
from rllib_arrow.algorithms.within_epoch import (
    COMPILING,
    LEARNING,
    BoardReader,
    Phase,
    PhaseTeller,
    open_board,
)

PHASE = Phase("breakout", 3, 8, LEARNING)
STORAGE = SimpleNamespace(trial_fs_path="bucket/runs/mine/00000_seed=42")


class Clock:
    """Time that passes when it is told to."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


class Told(PhaseTeller):
    """A teller that keeps what it would send."""

    def __init__(self):
        super().__init__()
        self.phases = []
        self._board = "somebody"

    def tell(self, phase: Phase) -> None:
        self.phases.append(phase)


def test_the_rest_of_an_epoch_takes_what_its_updates_took_so_far():
    assert PHASE.seconds_left() is None
    # 30 of 120 updates in 10 seconds: the other 90 take 30.
    assert PHASE._replace(done=30, total=120, seconds=10.0).seconds_left() == 30.0


def test_updates_are_told_once_a_second(monkeypatch):
    clock, teller = Clock(), Told()
    monkeypatch.setattr(within_epoch, "time", clock)
    on_progress = teller.updates(PHASE)
    for done in range(1, 11):
        on_progress(done, 40)
        clock.now += 0.25
    # The first after a second's silence: 1, and every fourth from then on.
    assert [phase.done for phase in teller.phases] == [1, 5, 9]
    last = teller.phases[-1]
    assert (last.epoch, last.total) == (3, 40)
    # 31 are left, at a quarter of a second each, whatever the first one took.
    assert last.seconds_left() == 31 * 0.25


def test_a_wait_before_the_first_update_is_announced():
    teller = Told()
    teller.updates(PHASE).announce(COMPILING)
    (told,) = teller.phases
    assert told.doing == COMPILING
    assert told.seconds_left() is None  # so that it is shown instead of a count


def test_a_board_passes_phases_on_to_whoever_reads_it(ray_two_cpus):
    with open_board() as board:
        teller, reader = PhaseTeller(STORAGE), BoardReader()
        teller.tell(PHASE)
        while not ray.get(board.read.remote()):
            pass
        while not reader():
            pass
        assert reader() == {"00000_seed=42": PHASE}
        ray.kill(board)


def test_without_a_board_nothing_is_told(ray_two_cpus):
    teller = PhaseTeller(STORAGE)
    teller.tell(PHASE)
    assert teller.updates(PHASE) is None
    assert BoardReader()() == {}


def test_an_algorithm_outside_of_tune_tells_nobody(ray_two_cpus):
    with open_board():
        assert PhaseTeller(None).updates(PHASE) is None
