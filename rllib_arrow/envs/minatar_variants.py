"""Six looks of one MinAtar game, each with one change more than the one before.

The desk analogue of the CoinRun suite: what is learned on one variant helps
on the next.
"""

from __future__ import annotations

import numpy as np

from rllib_arrow.envs.minatar import (
    CELLS,
    MAX_EPISODE_STEPS,
    PALETTE,
    STICKY,
    MinAtarTask,
    mixed_colours,
)

GAME = "space_invaders"
# Later variants have all changes of the earlier ones.
VARIANTS = ("base", "palette", "background", "mirrored", "monochrome", "bullets")

# Channels: cannon, alien, alien to the left, alien to the right, own and enemy bullet.
# All that can be in a cell is told apart by colour, and by brightness alone.
NEW_PALETTE = (
    (230, 215, 25),  # yellow
    (150, 245, 255),  # light blue
    (250, 245, 250),  # white
    (65, 155, 0),  # green
    (130, 20, 10),  # dark red
    (0, 0, 160),  # dark blue
)
BACKGROUND = (64, 84, 128)  # a dim blue, in place of black
BRIGHTNESS = (0.299, 0.587, 0.114)  # of red, green and blue (ITU-R BT.601)
BULLETS = {16: (255, 110, 0), 32: (255, 0, 200)}  # own orange, the enemy's pink


def colours_of(variant: str) -> np.ndarray:
    """Returns uint8 [2^6, 3]: a variant's colour of each set of channels."""
    rank = VARIANTS.index(variant)
    if rank == 0:
        return mixed_colours(PALETTE[: len(NEW_PALETTE)])
    colours = mixed_colours(NEW_PALETTE)
    if rank >= VARIANTS.index("background"):
        colours[0] = BACKGROUND
    if rank >= VARIANTS.index("monochrome"):
        colours = np.rint(colours @ np.array(BRIGHTNESS))[:, None].repeat(3, axis=1)
    if rank >= VARIANTS.index("bullets"):
        for channels, colour in BULLETS.items():
            colours[channels] = colour
    return colours.astype(np.uint8)


class MinAtarVariantTask(MinAtarTask):
    """Space Invaders in one of its looks; see `MinAtarTask`.

    From `mirrored` on the picture is turned left to right and the controls are not:
    what moved the cannon to the left now moves it to the right.
    """

    def __init__(
        self,
        variant: str,
        num_envs: int,
        *,
        sticky: float = STICKY,
        max_episode_steps: int = MAX_EPISODE_STEPS,
    ) -> None:
        super().__init__(
            GAME, num_envs, sticky=sticky, max_episode_steps=max_episode_steps
        )
        self._colours = colours_of(variant)
        if VARIANTS.index(variant) >= VARIANTS.index("mirrored"):
            self._columns = CELLS[::-1]
