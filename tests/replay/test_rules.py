"""The replay with parts other than the paper's, alone and together."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from rllib_arrow.replay import AugmentedReplay
from rllib_arrow.replay.rules import RULES, uses_losses
from tests.replay.reference import assert_same_batch, make_chunk

LEVEL = 0.001
LENGTH = 8
COMBINATIONS = [
    dict(zip(RULES, parts, strict=True)) for parts in itertools.product(*RULES.values())
]


def make(capacity=8, fraction=0.5, seed=0, **settings):
    return AugmentedReplay(capacity, LENGTH, fraction, seed, num_threads=1, **settings)


def run_epoch(replay, epoch, chunks=5, updates=6):
    """One epoch as the actor runs it; returns what was drawn."""
    replay.begin_epoch()
    for serial in range(chunks * epoch, chunks * (epoch + 1)):
        replay.add(make_chunk(serial, LENGTH))
    replay.reseed(epoch)
    draws = [replay.draw(4, 3) for _ in range(updates)]
    losses = np.random.default_rng(epoch).gamma(2.0, size=(updates - 2, 4))
    replay.note_losses([draw.origin for draw in draws[: updates - 2]], losses)
    return [(draw.origin, draw.starts.tolist()) for draw in draws]


def plain_state(replay):
    state = replay.get_state()
    return state["meta"], [(r.serial, r.data) for r in state["records"]]


@pytest.mark.parametrize("parts", COMBINATIONS, ids=lambda p: "-".join(p.values()))
def test_a_saved_replay_goes_on_as_if_nothing_had_happened(parts, tmp_path):
    whole, stopped = make(**parts), make(**parts)
    for epoch in range(4):
        assert run_epoch(whole, epoch) == run_epoch(stopped, epoch)
    stopped.save(tmp_path)
    resumed, taken_over = AugmentedReplay.load(tmp_path), make(seed=9, **parts)
    taken_over.set_state(whole.get_state())
    for epoch in range(4, 9):
        expected = run_epoch(whole, epoch)
        assert run_epoch(resumed, epoch) == expected
    assert plain_state(resumed) == plain_state(whole)
    assert resumed.stats() == whole.stats()


@pytest.mark.parametrize("rule", ["after_change", "balanced"])
def test_the_buffers_share_a_fixed_total_at_all_times(rule):
    replay = make(capacity=20, ltdm_fraction_rule=rule, ltdm_bounds=[0.1, 0.9])
    capacities = set()
    for epoch in range(30):
        run_epoch(replay, epoch)
        stats = replay.stats()
        capacities.add(stats["ltdm_capacity"])
        assert stats["ltdm_chunks"] <= stats["ltdm_capacity"]
        assert stats["fifo_chunks"] + stats["ltdm_chunks"] <= 20
        assert stats["fifo_capacity"] + stats["ltdm_chunks"] == 20
        held = replay.get_state()["meta"]["slots"]
        assert len(replay) == len({*held["fifo"], *held["ltdm"]})
        assert replay.stats()["bytes"] == sum(
            len(record.data) for record in replay.get_state()["records"]
        )
    assert len(capacities) > 2


def test_a_long_term_draw_is_uniform_over_the_past_while_the_split_moves():
    chunk, counts = make_chunk(0, LENGTH, (1, 1, 3)), np.zeros(48)
    for seed in range(500):
        replay = AugmentedReplay(
            8, LENGTH, 0.5, seed, num_threads=1, ltdm_fraction_rule="balanced"
        )
        rng = np.random.default_rng(seed % 7)
        for _ in range(6):
            replay.begin_epoch()
            for _ in range(8):
                replay.add(chunk)
            draws = [replay.draw(2, 3) for _ in range(4)]
            losses = rng.gamma(1.0, size=(4, 2)) + 0.1
            replay.note_losses([draw.origin for draw in draws], losses)
        drawn = replay.draw(1, 1, buffer="ltdm", rng=np.random.default_rng(seed))
        counts[drawn.origin.serials] += 1
    assert chisquare(counts).pvalue > LEVEL


def test_a_draw_from_one_buffer_with_a_stream_of_its_own_changes_nothing():
    replay = make(fifo_sampling="curious", ltdm_probability=0.0)
    run_epoch(replay, 0)
    before = plain_state(replay)
    draws = [
        replay.draw(4, 3, buffer="ltdm", rng=replay.stream("rehearsal", 0))
        for _ in range(2)
    ]
    assert {draw.buffer for draw in draws} == {"ltdm"}
    assert_same_batch(*(replay.gather(draw) for draw in draws))
    assert plain_state(replay) == before
    with pytest.raises(ValueError, match=r"buffer \('ltdm'\) must be .*\['fifo'\]"):
        fifo = make(fraction=0)
        fifo.add(make_chunk(0, LENGTH))
        fifo.draw(4, 3, buffer="ltdm")


def test_curious_draws_prefer_new_chunks_in_the_fifo_half_alone():
    curious, plain = make(fifo_sampling="curious"), make()
    for replay in (curious, plain):
        for epoch in range(4):
            run_epoch(replay, epoch, chunks=2, updates=60)
        replay.begin_epoch()
        replay.add(make_chunk(99, LENGTH))
        replay.reseed(4)
    newest = curious.get_state()["meta"]["added"] - 1
    drawn = {"fifo": [], "ltdm": []}
    for _ in range(40):
        draw = curious.draw(4, 3)
        drawn[draw.buffer] += draw.origin.serials
    assert drawn["fifo"][:4] == [newest] * 4
    shares = {k: np.mean(np.array(v) == newest) for k, v in drawn.items()}
    assert shares["fifo"] > 0.3 and shares["ltdm"] < 0.6
    slots = [replay.get_state()["meta"]["slots"] for replay in (curious, plain)]
    assert slots[0] == slots[1]


def test_an_adaptive_probability_decides_where_minibatches_come_from():
    replay = make(ltdm_probability_rule="after_change", ltdm_bounds=[0.02, 0.98])
    for epoch in range(40):  # without a jump the share rises to its upper bound
        replay.begin_epoch()
        for serial in range(5 * epoch, 5 * epoch + 5):
            replay.add(make_chunk(serial, LENGTH))
        draws = [replay.draw(4, 3) for _ in range(30)]
        replay.note_losses([draw.origin for draw in draws], np.ones((30, 4)))
    assert replay.stats()["ltdm_probability"] > 0.95
    assert np.mean([replay.draw(1, 1).buffer == "ltdm" for _ in range(300)]) > 0.9


@pytest.mark.parametrize(("old", "new", "explores"), [(9, 1, 0.0), (1, 9, 1.0)])
def test_a_change_shows_in_what_was_added_in_the_epoch_alone(old, new, explores):
    replay = make(fraction=0, exploration_rule="after_change")
    for epoch in range(2):
        replay.begin_epoch()
        for serial in range(4 * epoch, 4 * epoch + 4):
            replay.add(make_chunk(serial, LENGTH))
        draws = [replay.draw(4, 3) for _ in range(10)]
        serials = np.array([draw.origin.serials for draw in draws])
        losses = np.ones((10, 4)) if epoch == 0 else np.where(serials < 4, old, new)
        replay.note_losses([draw.origin for draw in draws], losses.astype(float))
    assert (serials < 4).any() and (serials >= 4).any()
    assert replay.exploration == explores


def test_only_some_parts_want_losses():
    assert not uses_losses({})
    assert not uses_losses({"fifo_retention": "local_forgetting"})
    assert uses_losses({"fifo_sampling": "curious"})
    assert uses_losses({"ltdm_probability_rule": "balanced"})
    assert uses_losses({"ltdm_fraction_rule": "after_change"})
    assert uses_losses({"exploration_rule": "after_change"})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fifo_sampling": "odd"}, r"fifo_sampling \('odd'\) .*uniform, curious"),
        ({"fifo_retention": "odd"}, "must be one of fifo, local_forgetting"),
        ({"ltdm_bounds": [0.5, 1.0]}, r"ltdm_bounds \(\[0.5, 1.0\]\)"),
        ({"ltdm_bounds": [0.7, 0.2]}, "the lower one first"),
        ({"fraction": 0, "ltdm_probability_rule": "balanced"}, "only one buffer"),
        ({"fraction": 1, "ltdm_fraction_rule": "balanced"}, "only one buffer"),
    ],
)
def test_impossible_parts_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        make(**wrong)


def test_parts_that_do_not_exist_are_refused():
    with pytest.raises(TypeError, match="no parts"):
        make(ltdm_sampling="curious")


def test_a_state_of_other_parts_is_refused():
    replay = make(fifo_sampling="curious")
    with pytest.raises(ValueError, match="fifo_sampling is uniform, this replay's is"):
        replay.set_state(make().get_state())


def test_a_snapshot_from_before_there_were_parts_is_read(tmp_path):
    replay, other = make(), make(seed=5)
    for serial in range(20):
        replay.add(make_chunk(serial, LENGTH))
    state = replay.get_state()
    meta = state["meta"]
    for key in ("fresh_from", "capacities", "sampling", "shares"):
        del meta[key]
    del meta["rules"]["ltdm"]["threshold"]
    meta["settings"] = {k: v for k, v in meta["settings"].items() if k not in RULES}
    other.set_state(state)
    for serial in range(20, 40):
        for one in (replay, other):
            one.add(make_chunk(serial, LENGTH))
        assert_same_batch(other.sample(4, 3), replay.sample(4, 3))
