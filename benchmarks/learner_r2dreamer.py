"""One update of NM512's r2dreamer in its DreamerV3 mode (64x64), served in turns.

Runs in an environment that has what r2dreamer needs and nothing of this project, on
the checkout that R2DREAMER_PATH names; started by `benchmarks.learner` with the batch
size, its length, the horizon and the threads. Its smallest size (12M parameters, the
nearest to ours) computes in float32 as all other sides do: on a CPU, half precision is
slower. R2DREAMER_COMPILE=1 has it compile its update, as it does on a GPU.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import hydra
import numpy as np
import torch
from tensordict import TensorDict

from benchmarks.turns import serve

ACTIONS, SIDE = 18, 64


def read_config(folder: Path, batch_size: int, length: int, horizon: int) -> object:
    """Returns r2dreamer's own settings, at our batch and horizon."""
    compiles = bool(os.environ.get("R2DREAMER_COMPILE"))
    with hydra.initialize_config_dir(str(folder / "configs"), version_base="1.3"):
        return hydra.compose(
            "configs",
            overrides=[
                "env=atari100k",
                "model=size12M",
                "device=cpu",
                "model.rep_loss=dreamer",
                f"model.compile={compiles}",
                f"model.imag_horizon={horizon}",
                f"batch_size={batch_size}",
                f"batch_length={length}",
            ],
        )


class OneBatch:
    """Stands in for the replay buffer with the same rows every time."""

    def __init__(self, agent: torch.nn.Module, batch_size: int, length: int) -> None:
        rows = (batch_size, length)
        actions = torch.randint(ACTIONS, rows)
        self._initial = agent.rssm.initial(batch_size)
        self._rows = {
            "image": torch.randint(0, 256, (*rows, SIDE, SIDE, 3), dtype=torch.uint8),
            "action": torch.nn.functional.one_hot(actions, ACTIONS).float(),
            "reward": torch.randn(*rows, 1),
            "is_first": torch.rand(*rows) < 0.02,
            "is_last": torch.zeros(*rows, 1),
            "is_terminal": (torch.rand(*rows, 1) < 0.02).float(),
        }
        self._shape = rows

    def sample(self) -> tuple[TensorDict, None, tuple[torch.Tensor, ...]]:
        """Returns rows, no index, and the latent state before them."""
        initial = tuple(part.detach() for part in self._initial)
        return TensorDict(dict(self._rows), batch_size=self._shape), None, initial

    def update(self, index: None, stoch: torch.Tensor, deter: torch.Tensor) -> None:
        """Keeps nothing."""


def main() -> None:
    """Builds r2dreamer's agent as its own main does, and serves."""
    batch_size, length, horizon, threads = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    folder = Path(os.environ["R2DREAMER_PATH"]).resolve()
    sys.path.insert(0, str(folder))
    import dreamer

    # Its half precision is for GPUs.
    dreamer.autocast = lambda **kwargs: torch.autocast("cpu", enabled=False)
    config = read_config(folder, batch_size, length, horizon)
    images = gym.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
    actions = SimpleNamespace(n=ACTIONS, shape=(ACTIONS,), discrete=True)
    agent = dreamer.Dreamer(config.model, gym.spaces.Dict({"image": images}), actions)
    rows = OneBatch(agent, batch_size, length)
    serve(lambda: agent.update(rows), runs=1)


if __name__ == "__main__":
    main()
