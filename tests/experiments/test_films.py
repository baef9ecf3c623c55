"""Films of an agent at play."""

import numpy as np
import pytest
import torch
from PIL import Image

from rllib_arrow import Curriculum, TESSACConfig
from rllib_arrow.envs.suites import make_task
from rllib_arrow.experiments.films import GAP, SIDE, film, write_films, write_gif
from tests.algorithms.dv3_tools import make_config, make_spec

ACTIONS = 6


@pytest.fixture
def dreamer():
    torch.manual_seed(0)
    return make_spec(make_config(), side=16, actions=ACTIONS).build()


def shown(frame: np.ndarray) -> np.ndarray:
    """A 16 x 16 frame, eight pixels to a cell."""
    return np.kron(frame, np.ones((8, 8, 1), np.uint8))


def test_a_film_shows_the_game_beside_what_the_model_makes_of_it(dreamer):
    frames = film(dreamer, make_task("minatar", "breakout", 1), seed=4)
    assert frames.shape[1:] == (SIDE, 2 * SIDE + GAP, 3) and frames.dtype == np.uint8

    # The same episode, played by RLlib's forward method.
    env, generator = make_task("minatar", "breakout", 1), torch.Generator()
    rows, state = env.reset(4), None
    generator.manual_seed(4)
    for frame in frames:
        np.testing.assert_array_equal(frame[:, :SIDE], shown(rows.obs[0]))
        out = dreamer.forward_exploration(
            {"obs": rows.obs, "state_in": state, "generator": generator}
        )
        state = out["state_out"]
        inferred = torch.cat([state["h"], state["z"]], -1)
        with torch.no_grad():
            picture = dreamer.decoder(inferred)[0].permute(1, 2, 0).numpy()
        pixels = np.clip(np.rint(picture * 255), 0, 255).astype(np.uint8)
        np.testing.assert_array_equal(frame[:, -SIDE:], shown(pixels))
        was_last = rows.is_last[0]
        rows = env.step(out["actions"].numpy())
    assert was_last, "a film ends with its episode"


def test_a_film_of_a_long_episode_is_cut(dreamer):
    assert len(film(dreamer, make_task("minatar", "freeway", 1), 0, steps=9)) == 9


def test_a_policy_without_a_world_model_is_filmed_alone():
    env = make_task("minatar", "breakout", 1)
    spaces = {"default_policy": (env.observation_space, env.action_space)}
    config = TESSACConfig().training(cnn_depth=4, mlp_units=16)
    module = config.get_rl_module_spec(spaces=spaces).build()
    assert film(module, env, seed=1).shape[1:] == (SIDE, SIDE, 3)


def test_each_task_gets_a_gif_that_plays_for_ever(dreamer, tmp_path):
    curriculum = Curriculum.from_dict(
        {"suite": "minatar", "tasks": ["breakout", "asterix"], "epochs_per_task": 1}
    )
    out = tmp_path / "films"
    tasks = curriculum.task_names
    paths = write_films(out, dreamer, curriculum, tasks, seed=0, max_episode_steps=20)
    assert [path.name for path in paths] == ["breakout.gif", "asterix.gif"]
    assert sorted(out.iterdir()) == sorted(paths)
    for path in paths:
        with Image.open(path) as gif:
            assert gif.size == (2 * SIDE + GAP, SIDE)
            assert 1 < gif.n_frames <= 21 and gif.info["loop"] == 0


def test_a_gif_keeps_its_frames_and_their_colours(tmp_path):
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    frames = [np.full((8, 8, 3), colour) for colour in colours]
    write_gif(tmp_path / "a.gif", frames)
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.n_frames == 3
        for i, frame in enumerate(frames):
            gif.seek(i)
            np.testing.assert_array_equal(np.asarray(gif.convert("RGB")), frame)


def test_the_film_of_the_noisiest_model_can_be_attached_to_an_issue(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (300, 64, 64, 3), np.uint8)
    frames = noise.repeat(2, axis=1).repeat(2, axis=2)
    write_gif(tmp_path / "a.gif", np.concatenate([frames, frames], axis=2))
    assert (tmp_path / "a.gif").stat().st_size < 10e6
