"""ARROW and its baselines for continual reinforcement learning, as an RLlib plugin."""

from ray import tune

from rllib_arrow.algorithms.arrow import ARROW, ARROWConfig
from rllib_arrow.algorithms.dv3 import DV3, DV3Config
from rllib_arrow.algorithms.tes_sac import TESSAC, TESSACConfig
from rllib_arrow.curriculum import Curriculum, TaskScheduler
from rllib_arrow.envs.continual import Continual
from rllib_arrow.replay import AugmentedReplay, Chunk
from rllib_arrow.runs.load import load_runs

__all__ = [
    "ARROW",
    "DV3",
    "TESSAC",
    "ARROWConfig",
    "AugmentedReplay",
    "Chunk",
    "Curriculum",
    "DV3Config",
    "TESSACConfig",
    "TaskScheduler",
    "load_runs",
]

ALGORITHMS = {"ARROW": ARROW, "DV3": DV3, "TES-SAC": TESSAC}

for _name, _algorithm in ALGORITHMS.items():
    tune.register_trainable(_name, _algorithm)
tune.register_env("Continual", lambda context: Continual(context))
