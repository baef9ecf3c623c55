"""Steps per second of collection, against the raw environment and RLlib's runner.

A random policy, so that only the path of the data is measured. All sides take turns in
one run; a side's figure is its best round, since whatever else the machine does only
ever slows a round down.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import ale_py
import gymnasium as gym
import numpy as np
from PIL import Image
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.wrappers.atari_wrappers import wrap_atari_for_new_api_stack

from rllib_arrow import DV3Config
from rllib_arrow.algorithms.env_runner import ContinualEnvRunner
from rllib_arrow.envs.suites import make_task

ENVS = 4
GAMES = {"atari": "ms_pacman", "coinrun": "coinrun", "minatar": "breakout"}


def our_runner(suite: str, steps: int) -> Callable[[], int]:
    curriculum = {"suite": suite, "tasks": [GAMES[suite]], "epochs_per_task": 1}
    config = DV3Config().continual(curriculum=curriculum).training(model_size="nano")
    config.env_runners(num_envs_per_env_runner=ENVS, rollout_fragment_length=steps)
    runner = ContinualEnvRunner(config=config, worker_index=0)
    # Epoch 0 is the one that acts at random.
    return lambda: runner.sample(epoch=0)[1]["frames"]


def native(suite: str, steps: int) -> Callable[[], int]:
    rng = np.random.default_rng(0)
    actions = rng.integers(15, size=(steps, ENVS))
    if suite == "coinrun":
        from procgen import ProcgenGym3Env

        def play() -> int:
            env = ProcgenGym3Env(ENVS, "coinrun", distribution_mode="hard", rand_seed=1)
            for row in actions:
                env.act(row.astype(np.int32))
                env.observe()
            return actions.size

        return play
    if suite == "atari":

        def play() -> int:
            env = ale_py.vector_env.AtariVectorEnv(
                "ms_pacman",
                num_envs=ENVS,
                img_height=64,
                img_width=64,
                grayscale=False,
                stack_num=1,
                frameskip=4,
                repeat_action_probability=0.25,
                full_action_space=True,
                reward_clipping=False,
                episodic_life=False,
            )
            env.reset(seed=1)
            for row in actions:
                env.step(row)
            env.close()
            return actions.size

        return play

    def play() -> int:
        env = make_task(suite, GAMES[suite], ENVS)
        env.reset(0)
        for row in actions % 6:
            env.step(row)
        return actions.size

    return play


class SkipAndShrink(gym.Wrapper):
    """Four frames a step, the maximum of the last two, 64 x 64: what our side does."""

    def __init__(self, env: gym.Env):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 255, (64, 64, 3), np.uint8)

    def reset(self, **kwargs):
        frame, info = self.env.reset(**kwargs)
        return _shrink(frame), info

    def step(self, action):
        total, frames = 0.0, []
        for _ in range(4):
            frame, reward, terminated, truncated, info = self.env.step(action)
            total += reward
            frames = [*frames[-1:], frame]
            if terminated or truncated:
                break
        return _shrink(np.max(frames, axis=0)), total, terminated, truncated, info


def _shrink(frame: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(frame).resize((64, 64), Image.Resampling.BOX))


def rllib_wrappers(env: gym.Env) -> gym.Env:
    return wrap_atari_for_new_api_stack(env, dim=64, frameskip=4, grayscale=False)


def rllib_runner(steps: int, wrap: Callable[[gym.Env], gym.Env]) -> Callable[[], int]:
    gym.register_envs(ale_py)

    def make(_) -> gym.Env:
        game = gym.make(
            "ALE/MsPacman-v5",
            frameskip=1,
            repeat_action_probability=0.25,
            full_action_space=True,
        )
        return wrap(game)

    config = PPOConfig().environment(make)
    config.env_runners(num_envs_per_env_runner=ENVS)
    runner = SingleAgentEnvRunner(config=config, worker_index=1)

    def play() -> int:
        runner.sample(num_timesteps=steps * ENVS, random_actions=True)
        return steps * ENVS

    return play


def best_rates(sides: dict[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    """Returns steps per second of each side in its best round."""
    best = dict.fromkeys(sides, 0.0)
    for play in sides.values():
        play()
    for _ in range(rounds):
        for name, play in sides.items():
            began = time.perf_counter()
            frames = play()
            best[name] = max(best[name], frames / (time.perf_counter() - began))
    return best


def report(name: str, ours: float, peer: float, peer_name: str) -> None:
    line = {
        "name": name,
        "ours": round(ours),
        "peer": round(peer),
        "peer_name": peer_name,
        "ratio": round(ours / peer, 3),
        "unit": "steps/s",
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=512)
    args = parser.parse_args()
    for suite in GAMES:
        sides = {"ours": our_runner(suite, args.steps)}
        sides["the vector environment alone"] = native(suite, args.steps)
        if suite == "atari":
            runner = "RLlib's SingleAgentEnvRunner, "
            sides |= {
                runner + "RLlib's Atari wrappers": rllib_runner(
                    args.steps, rllib_wrappers
                ),
                runner + "one lean wrapper": rllib_runner(args.steps, SkipAndShrink),
            }
        rates = best_rates(sides, args.rounds)
        ours = rates.pop("ours")
        for peer, rate in rates.items():
            report(f"collect_{suite}", ours, rate, peer)


if __name__ == "__main__":
    main()
