import json

import numpy as np

from rllib_arrow.replay.local_forgetting import LocalForgetting
from tests.replay.reference import make_chunk


def place(number, brightness):
    """A chunk of one place: noise around a brightness."""
    chunk = make_chunk(number, 16)
    return chunk._replace(obs=(chunk.obs // 8 + brightness).astype(np.uint8))


def offer(rule, held, chunks):
    """Puts named chunks where the rule says; returns the names held, by slot."""
    for name, chunk in chunks:
        slot = rule.slot_for(chunk)
        assert rule.slot_for(chunk) == slot  # asking changes nothing
        held[slot : slot + 1] = [name]
        rule.advance(chunk)
    return held


def visits(place_name, brightness, numbers):
    return [((place_name, n), place(n, brightness)) for n in numbers]


def test_what_looks_different_stays_and_the_oldest_neighbours_go():
    rule = LocalForgetting(16, seed=3)
    held = offer(rule, [], visits("dark", 0, range(8)))
    offer(rule, held, visits("bright", 200, range(8)))
    offer(rule, held, visits("bright", 200, range(100, 150)))
    assert {number for name, number in held if name == "dark"} == set(range(8))
    # Which of the bright ones went depends on the noise, but none of the old is left.
    assert min(number for name, number in held if name == "bright") >= 100


def test_among_chunks_that_look_the_same_it_is_a_fifo():
    rule = LocalForgetting(8, seed=3)
    held = offer(rule, [], [(n, place(0, 50)) for n in range(29)])
    assert sorted(held) == list(range(21, 29))


def test_shrinking_drops_the_oldest():
    rule = LocalForgetting(8, seed=3)
    held = offer(rule, [], visits("here", 50, range(20)))
    newest = sorted(held)[-3:]
    assert [held[slot] for slot in rule.resize(3)] == newest
    assert rule.resize(0) == []
    assert rule.slot_for(place(0, 50)) is None


def test_it_goes_on_from_its_state_through_json():
    one, other = LocalForgetting(8, seed=3), LocalForgetting(8, seed=3)
    held = offer(one, [], visits("a", 0, range(6)) + visits("b", 90, range(6)))
    other.set_state(json.loads(json.dumps(one.get_state())))
    more = visits("c", 40, range(9)) + visits("a", 0, range(50, 59))
    assert offer(one, list(held), more) == offer(other, list(held), more)


def test_another_seed_projects_otherwise():
    chunk = place(0, 50)
    one, other = (LocalForgetting(8, seed)._embed(chunk) for seed in (3, 4))
    assert not np.allclose(one, other)
    np.testing.assert_array_equal(one, LocalForgetting(8, 3)._embed(chunk))
