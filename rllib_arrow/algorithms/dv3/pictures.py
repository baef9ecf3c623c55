"""Strips of images: what the world model sees, and what it expects to see.

Each strip has three rows: the truth, the model's picture, and the error (grey is none,
brighter is too bright). In a dream the first frames are reconstructions, marked by a
white line below them; from then on the model sees actions only.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule
from rllib_arrow.files import replacing
from rllib_arrow.models.images import images_to_float, images_to_uint8

CONTEXT = 5
GAP = 2  # pixels between sequences


@torch.no_grad()
def reconstruct(
    module: DV3RLModule, batch: dict[str, np.ndarray], generator: torch.Generator
) -> np.ndarray:
    """Returns uint8 [B, T, H, W, C]: every frame as decoded from its own state."""
    return _decode(module, _posterior_states(module, batch, generator))


@torch.no_grad()
def dream_on(
    module: DV3RLModule,
    batch: dict[str, np.ndarray],
    generator: torch.Generator,
    context: int = CONTEXT,
) -> np.ndarray:
    """Returns uint8 [B, T, H, W, C]: `context` frames seen, the rest imagined.

    The imagination takes the batch's own actions, so it can be held against the truth.
    It knows of no reset: after the end of an episode it goes its own way.
    """
    length = batch["actions"].shape[1]
    if not 0 < context <= length:
        raise ValueError(f"context ({context}) must be in 1..{length}, the length.")
    seen = {key: value[:, :context] for key, value in batch.items()}
    states = list(_posterior_states(module, seen, generator))
    actions = _time_major(batch["actions"], states[0].device)
    size = module.size
    for t in range(context, length):
        h, z = states[-1].split([size.gru_units, size.latent_units], dim=-1)
        noise = _uniform(generator, len(h), size.latent_groups)
        h, z = module.rssm.imagine_step(h, z, actions[t - 1], noise)
        states.append(torch.cat([h, z], dim=-1))
    return _decode(module, torch.stack(states))


def strip(truth: np.ndarray, model: np.ndarray, context: int = 0) -> np.ndarray:
    """Lays sequences out as one image: uint8 [B, T, H, W, C] twice, to [H', W', 3]."""
    error = ((model.astype(np.int16) - truth + 255) // 2).astype(np.uint8)
    return _lay_out(truth, _marked(model, context), error)


def story(module: DV3RLModule, batch: dict[str, np.ndarray], seed: int) -> np.ndarray:
    """Returns the truth, its reconstruction and a dream below each other, [H', W', 3].

    The frames that the dream was shown are marked as in a strip.
    """
    generator = torch.Generator(_device(module)).manual_seed(seed)
    reconstructed = reconstruct(module, batch, generator)
    dreamt = dream_on(module, batch, generator)
    return _lay_out(batch["obs"], reconstructed, _marked(dreamt, CONTEXT))


def make_strips(
    module: DV3RLModule, batch: dict[str, np.ndarray], seed: int
) -> dict[str, np.ndarray]:
    """Returns `reconstruction` and `dream` as uint8 [H', W', 3].

    TensorBoard takes them as they are with `dataformats="HWC"`. `batch` is as
    `AugmentedReplay.sample` gives it.
    """
    generator = torch.Generator(_device(module)).manual_seed(seed)
    reconstructed = reconstruct(module, batch, generator)
    context = min(CONTEXT, batch["actions"].shape[1])
    dreamt = dream_on(module, batch, generator, context)
    return {
        "reconstruction": strip(batch["obs"], reconstructed),
        "dream": strip(batch["obs"], dreamt, context),
    }


def save_strips(strips: dict[str, np.ndarray], path: str | Path, zoom: int = 2) -> None:
    """Writes `<path>/reconstruction.png` and `<path>/dream.png`."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    for name, pixels in strips.items():
        large = pixels.repeat(zoom, axis=0).repeat(zoom, axis=1)
        with replacing(folder / f"{name}.png") as file:
            Image.fromarray(large).save(file, format="PNG")


def _posterior_states(
    module: DV3RLModule, batch: dict[str, np.ndarray], generator: torch.Generator
) -> Tensor:
    """Returns [T, B, state_units]."""
    device = _device(module)
    obs = _time_major(batch["obs"], device)
    is_first = _time_major(batch["is_first"], device)
    noise = _uniform(generator, *is_first.shape, module.size.latent_groups)
    actions = _time_major(batch["actions"], device)
    images = images_to_float(obs.flatten(0, 1))
    return module.infer_states(images, actions, is_first, noise).states


def _decode(module: DV3RLModule, states: Tensor) -> np.ndarray:
    frames = images_to_uint8(module.decoder(states.flatten(0, 1)))
    frames = frames.unflatten(0, states.shape[:2]).transpose(0, 1)
    return frames.cpu().numpy()


def _marked(frames: np.ndarray, context: int) -> np.ndarray:
    """Draws a white line below the first frames of [B, T, H, W, C]."""
    frames = frames.copy()
    frames[:, :context, -1] = 255
    return frames


def _lay_out(*rows: np.ndarray) -> np.ndarray:
    """Lays uint8 [B, T, H, W, C] below each other, sequence by sequence."""
    sequences = []
    for one in zip(*rows, strict=True):
        sequences += [np.concatenate([_side_by_side(row) for row in one])]
        sequences += [np.full((GAP, *sequences[-1].shape[1:]), 128, np.uint8)]
    image = np.concatenate(sequences[:-1])
    return image if image.shape[-1] == 3 else image[..., :1].repeat(3, axis=-1)


def _side_by_side(frames: np.ndarray) -> np.ndarray:
    return np.concatenate(list(frames), axis=1)


def _time_major(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.tensor(array.swapaxes(0, 1), device=device)


def _uniform(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device)


def _device(module: DV3RLModule) -> torch.device:
    return module.return_range.device
