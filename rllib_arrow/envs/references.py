"""Reference scores: what a random policy and single-task ARROW reach."""

from __future__ import annotations

from dataclasses import dataclass

from rllib_arrow.envs.minatar_variants import VARIANTS


@dataclass(frozen=True)
class Reference:
    """A task's scores in raw units, and where they are from."""

    random: float  # mean return of a uniformly random policy, measured here
    random_std: float  # over episodes
    random_episodes: int
    paper_random: float | None
    arrow: float | None  # single-task ARROW at the end of its training
    paper_source: str | None

    @property
    def source(self) -> str:
        """Where the two scores that anchor a normalised scale are from, in words."""
        random = f"random: {self.random_episodes} episodes of benchmarks/random_scores"
        arrow = self.paper_source if self.arrow is not None else "none"
        return f"{random}; ARROW: {arrow}"


# Mean return, standard deviation over episodes, episodes: the output of
# `python -m benchmarks.random_scores`.
RANDOM = {
    "atari": {
        "ms_pacman": (240.938, 83.795, 32),
        "boxing": (0.938, 5.792, 32),
        "crazy_climber": (7821.875, 2059.398, 32),
        "frostbite": (65.312, 39.184, 32),
        "seaquest": (66.25, 56.44, 32),
        "enduro": (0.25, 0.672, 32),
    },
    "coinrun": {
        "coinrun": (2.637, 4.408, 1024),
        "nb": (2.637, 4.408, 1024),
        "nb_rt": (2.637, 4.408, 1024),
        "nb_rt_ga": (2.363, 4.25, 1024),
        "nb_rt_ga_ma": (2.363, 4.25, 1024),
        "nb_rt_ga_ma_ca": (2.363, 4.25, 1024),
    },
    "minatar": {
        "breakout": (0.555, 0.803, 1024),
        "asterix": (0.585, 0.956, 1024),
        "space_invaders": (2.759, 2.337, 1024),
        "freeway": (0.912, 0.947, 1024),
        "seaquest": (0.128, 0.458, 1024),
    },
    # The looks of one game: the same episodes, so the same score.
    "minatar_variants": dict.fromkeys(VARIANTS, (2.759, 2.337, 1024)),
}

# Random and single-task ARROW as the paper prints them. Its Atari table has random
# scores after reward scaling and ARROW's before it: 12.40 for Ms. Pac-Man is 248 points
# at a scale of 0.05, while 1540.30 are points (its scaled curve peaks at 96.26).
PAPER = {
    "atari": {
        "ms_pacman": (12.40, 1540.30),
        "boxing": (0.51, 90.27),
        "crazy_climber": (7.49, 109245.16),
        "frostbite": (14.48, 297.83),
        "seaquest": (38.47, 439.62),
        "enduro": (0.01, 707.47),
    },
    "coinrun": {
        "coinrun": (2.78, 6.09),
        "nb": (2.45, 7.14),
        "nb_rt": (2.70, 6.89),
        "nb_rt_ga": (2.62, 6.85),
        "nb_rt_ga_ma": (2.50, 7.89),
        "nb_rt_ga_ma_ca": (2.69, 5.78),
    },
}
PAPER_SOURCES = {
    "atari": "ARROW paper, appendix table of Atari single-task results",
    "coinrun": "ARROW paper, appendix table of CoinRun single-task results",
}
