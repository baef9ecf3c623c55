"""The variants against the plain game: same play, other looks."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from rllib_arrow.envs.minatar import CELLS
from rllib_arrow.envs.minatar_variants import VARIANTS, colours_of
from rllib_arrow.envs.suites import make_task

CANNON, ALIEN, TO_LEFT, TO_RIGHT, OWN, ENEMY = (1 << channel for channel in range(6))
SINGLE = (0, CANNON, ALIEN | TO_LEFT, ALIEN | TO_RIGHT, OWN, ENEMY)
# All that one cell can hold.
POSSIBLE = [
    cannon | aliens | own | enemy
    for cannon in (0, CANNON)
    for aliens in (0, ALIEN | TO_LEFT, ALIEN | TO_RIGHT)
    for own in (0, OWN)
    for enemy in (0, ENEMY)
]


def nearest(colours: np.ndarray, sets) -> float:
    """Returns the distance of the two most similar colours."""
    pairs = combinations(colours[list(sets)].astype(float), 2)
    return min(np.linalg.norm(a - b) for a, b in pairs)


def play(suite: str, task: str, steps: int = 400):
    made = make_task(suite, task, 4)
    rng = np.random.default_rng(0)
    return [made.reset(7)] + [made.step(rng.integers(6, size=4)) for _ in range(steps)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_is_the_game_with_one_colour_exchanged_for_another(variant):
    base = colours_of("base")
    exchange = {tuple(base[s]): colours_of(variant)[s] for s in POSSIBLE}
    turned = VARIANTS.index(variant) >= 3
    plain, rows = play("minatar", "space_invaders"), play("minatar_variants", variant)
    for ours, theirs in zip(rows, plain, strict=True):
        for field, other in zip(ours[1:], theirs[1:], strict=True):
            np.testing.assert_array_equal(field, other)
        frames = theirs.obs
        # One pixel of each cell, so that the turned grid meets the turned image.
        first = np.searchsorted(CELLS, np.arange(10))
        cells = frames[:, first][:, :, first]
        shown = ours.obs[:, first][:, :, 15 - first if turned else first]
        expected = [exchange[tuple(pixel)] for pixel in cells.reshape(-1, 3)]
        np.testing.assert_array_equal(shown.reshape(-1, 3), expected)


@pytest.mark.parametrize("variant", VARIANTS)
def test_in_every_variant_nothing_hides_and_objects_stand_out(variant):
    colours = colours_of(variant)
    assert nearest(colours, POSSIBLE) > 0
    assert nearest(colours, SINGLE) > (30 if variant == "monochrome" else 50)


def test_each_variant_changes_one_thing_of_the_one_before():
    colours = {variant: colours_of(variant).astype(int) for variant in VARIANTS}

    def changed(one: str, other: str) -> set[int]:
        differs = (colours[one] != colours[other]).any(axis=1)
        return {channels for channels in POSSIBLE if differs[channels]}

    steps = list(pairwise(VARIANTS))
    assert steps[0] == ("base", "palette")
    assert changed(*steps[0]) == set(POSSIBLE) - {0}
    assert changed(*steps[1]) == {0}
    assert changed(*steps[2]) == set()  # mirrored: the picture is turned
    assert (colours["monochrome"] == colours["monochrome"][:, :1]).all()
    assert changed(*steps[4]) == {OWN, ENEMY}
    # The new palette is far from the old one.
    shift = colours["base"][list(SINGLE[1:])] - colours["palette"][list(SINGLE[1:])]
    assert np.linalg.norm(shift, axis=1).min() > 100


def test_in_the_mirror_the_left_action_moves_the_cannon_to_the_right():
    for variant, direction in (("background", -1), ("mirrored", 1)):
        task = make_task("minatar_variants", variant, 1, sticky=0.0)
        cannon = colours_of(variant)[CANNON]

        def place(rows, cannon=cannon):
            return np.flatnonzero((rows.obs[0, -1] == cannon).all(axis=-1)).mean()

        before, after = place(task.reset(0)), place(task.step(np.array([1])))
        assert np.sign(after - before) == direction
