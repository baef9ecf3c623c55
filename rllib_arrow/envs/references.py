"""Reference scores: what a random policy and single-task ARROW reach."""

from __future__ import annotations

from dataclasses import dataclass

from rllib_arrow.envs.minatar_variants import VARIANTS


@dataclass(frozen=True)
class Reference:
    """A task's scores in raw units, and where they are from."""

    random: float  # mean return of a uniformly random policy
    arrow: float | None  # of single-task ARROW at the end of its training
    source: str  # where the two are from, in words
    random_episodes: int = 0
    paper_random: float | None = None

    @classmethod
    def given(cls, low: float, high: float) -> Reference:
        """Returns a user's own: the scores to be called 0 and 1."""
        return cls(low, high, "low and high as given with the task")

    @classmethod
    def measured(cls, suite: str, task: str, reward_scale: float) -> Reference:
        """Returns the shipped scores of a suite's task."""
        random, _, episodes = RANDOM[suite][task]
        by_chance = f"random: {episodes} episodes of benchmarks/random_scores"
        scaled_random, arrow = PAPER.get(suite, {}).get(task, (None, None))
        source = PAPER_SOURCES.get(suite)
        if arrow is None:
            arrow = SINGLE.get(suite, {}).get(task)
            source = SINGLE_SOURCE if arrow is not None else "none"
        return cls(
            random=random,
            arrow=arrow,
            source=f"{by_chance}; ARROW: {source}",
            random_episodes=episodes,
            paper_random=scaled_random and scaled_random / reward_scale,
        )


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
    "minigrid": {
        "door_key": (0.16, 0.251, 512),
        "simple_crossing": (0.117, 0.229, 512),
        "lava_gap": (0.086, 0.238, 512),
        "multi_room": (0.028, 0.112, 512),
    },
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

# Single-task ARROW at desk scale, where the paper has no scores: the median over seeds
# at the end of training (`docs/results/minatar/runs/single`).
SINGLE: dict[str, dict[str, float]] = {
    "minatar": {"space_invaders": 12.828, "breakout": 3.156, "freeway": 22.672},
    "minigrid": {"lava_gap": 0.638},
}
SINGLE_SOURCE = "median of the single-task runs in docs/results"
