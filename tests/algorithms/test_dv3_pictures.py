import numpy as np
import pytest
import torch
from PIL import Image

from rllib_arrow.algorithms.dv3.pictures import (
    dream_on,
    make_strips,
    reconstruct,
    save_strips,
    strip,
)
from tests.algorithms.dv3_tools import SIDE, B, T, make_learner, random_batches


def test_a_strip_shows_truth_model_and_error_below_each_other():
    truth = np.full((1, 2, 4, 4, 3), 100, np.uint8)
    model = truth.copy()
    model[0, 1] = 200
    image = strip(truth, model)
    assert image.shape == (12, 8, 3)
    assert (image[:4] == 100).all()
    assert (image[4:8, 4:] == 200).all()
    assert (image[8:, :4] == 127).all() and (image[8:, 4:] == 177).all()


def test_the_seen_frames_of_a_dream_are_marked():
    frames = np.zeros((1, 3, 4, 4, 3), np.uint8)
    image = strip(frames, frames, context=2)
    assert (image[7, :8] == 255).all() and (image[7, 8:] == 0).all()


def test_sequences_are_stacked_and_grey_images_become_rgb():
    frames = np.zeros((3, 2, 4, 4, 1), np.uint8)
    assert strip(frames, frames).shape == (3 * 12 + 2 * 2, 8, 3)


def test_a_dream_equals_the_reconstruction_while_it_sees_and_then_only_uses_actions():
    module, batch = make_learner().net, next(random_batches())
    batch["is_first"][:] = False
    seen = dream_on(module, batch, torch.Generator().manual_seed(0), context=3)
    first = {key: value[:, :3] for key, value in batch.items()}
    peer = reconstruct(module, first, torch.Generator().manual_seed(0))
    assert seen.shape == (B, T, SIDE, SIDE, 3) and seen.dtype == np.uint8
    np.testing.assert_array_equal(seen[:, :3], peer)
    batch["obs"] = batch["obs"].copy()
    batch["obs"][:, 3:] = 0
    blind = dream_on(module, batch, torch.Generator().manual_seed(0), context=3)
    np.testing.assert_array_equal(seen, blind)
    with pytest.raises(ValueError, match=r"context \(7\) must be in 1..6"):
        dream_on(module, batch, torch.Generator(), context=7)


def test_short_sequences_are_pictured_too():
    strips = make_strips(make_learner().net, next(random_batches(t=3)), seed=1)
    assert strips["dream"].shape == strips["reconstruction"].shape


def test_strips_are_written_as_png_and_returned_for_tensorboard(tmp_path):
    module, batch = make_learner().net, next(random_batches())
    kept = {key: value.copy() for key, value in batch.items()}
    strips = make_strips(module, batch, seed=1)
    save_strips(strips, tmp_path / "a", zoom=3)
    again = make_strips(module, batch, seed=1)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["dream.png", "reconstruction.png"]
    for name, pixels in strips.items():
        assert pixels.dtype == np.uint8 and pixels.shape[-1] == 3
        np.testing.assert_array_equal(pixels, again[name])
        written = np.asarray(Image.open(tmp_path / "a" / f"{name}.png"))
        np.testing.assert_array_equal(written[::3, ::3], pixels)
    for key, value in kept.items():
        np.testing.assert_array_equal(batch[key], value)
