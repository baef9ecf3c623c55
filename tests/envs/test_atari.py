"""The Atari suite against a plain single emulator."""

import ale_py
import numpy as np
import pytest
from ale_py import roms

from rllib_arrow.envs.atari import AtariTask
from rllib_arrow.envs.base import native_seeds

STICKY = 0.25
SKIP = 4


class PlainGame:
    """One emulator with the suite's preprocessing, written out step by step."""

    def __init__(self, game: str, seed: int, max_frames: int):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.ale = ale_py.ALEInterface()
        self.ale.setInt("random_seed", seed)
        self.ale.setFloat("repeat_action_probability", STICKY)
        self.ale.loadROM(roms.get_rom_path(game))
        self.actions = self.ale.getLegalActionSet()
        self.max_frames = max_frames

    def reset(self) -> np.ndarray:
        self.ale.reset_game()
        self.frames = 0
        self.pooled = self.ale.getScreenRGB()
        return area_resize(self.pooled)

    def step(self, action: int):
        reward, over, screens = 0, False, []
        for frame in range(SKIP):
            reward += self.ale.act(self.actions[action])
            self.frames += 1
            over = self.ale.game_over()
            if over or self.frames >= self.max_frames:
                # ALE pools whatever it had seen before the end.
                screens.append(self.pooled)
                break
            if frame >= SKIP - 2:
                screens.append(self.ale.getScreenRGB())
        self.pooled = np.max(screens, axis=0)
        truncated = self.frames >= self.max_frames and not over
        return area_resize(self.pooled), reward, over, truncated


def area_resize(image: np.ndarray) -> np.ndarray:
    """Shrinks to 64x64 by averaging; pixels that lie across an edge are shared."""
    shrunk = ROWS @ image.reshape(210, -1)
    return COLUMNS @ shrunk.reshape(64, 160, 3)


def overlaps(size: int, cells: int = 64) -> np.ndarray:
    """Which share of each cell every one of `size` pixels takes."""
    edges = np.arange(cells + 1)[:, None] * size / cells
    covered = np.clip(edges - np.arange(size), 0, 1)
    return np.diff(covered, axis=0) * cells / size


ROWS, COLUMNS = overlaps(210), overlaps(160)


@pytest.mark.parametrize(
    ("game", "steps", "max_frames"),
    [("frostbite", 450, 108_000), ("crazy_climber", 150, 500)],
)
def test_rows_equal_a_plain_emulator_step_by_step_across_episode_ends(
    game, steps, max_frames
):
    # noop_max=1 draws from {0}: the plain emulator need not guess the no-ops.
    task = AtariTask(game, 2, noop_max=1, max_num_frames_per_episode=max_frames)
    rows = task.reset(7)
    plain = [PlainGame(game, seed, max_frames) for seed in native_seeds(7, 2)]
    for i, one in enumerate(plain):
        np.testing.assert_allclose(rows.obs[i], one.reset(), atol=0.51)
    rng = np.random.default_rng(0)
    ended, ends, score = [False, False], 0, 0.0
    for _ in range(steps):
        actions = rng.integers(18, size=2)
        rows = task.step(actions)
        for i, one in enumerate(plain):
            if ended[i]:
                expected = (one.reset(), 0, False, False)
            else:
                expected = one.step(actions[i])
            assert rows.is_first[i] == ended[i]
            assert rows.rewards[i] == expected[1]
            assert (rows.is_terminated[i], rows.is_truncated[i]) == expected[2:]
            np.testing.assert_allclose(rows.obs[i], expected[0], atol=0.51)
            ended[i] = expected[2] or expected[3]
            ends += ended[i]
            score += expected[1]
    assert ends >= 2
    assert score > 0


def test_no_ops_at_the_start_vary_with_the_seed():
    task = AtariTask("enduro", 8, noop_max=30)
    first_frames = {frame.tobytes() for frame in task.reset(3).obs}
    assert len(first_frames) > 1


@pytest.mark.parametrize(
    "option",
    [
        {"repeat_action_probability": 1.5},
        {"repeat_action_probability": "0.25"},
        {"frame_skip": 0},
        {"frame_skip": True},
        {"noop_max": -1},
        {"max_num_frames_per_episode": 1e3},
    ],
)
def test_a_bad_setting_is_named_with_its_value(option):
    ((name, value),) = option.items()
    with pytest.raises(ValueError) as error:
        AtariTask("boxing", 1, **option)
    assert str(error.value).startswith(f"{name} ({value!r}) must be")
