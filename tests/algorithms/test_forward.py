"""RLlib's own way to act with a module: `from_checkpoint`, then the forward methods."""

import numpy as np
import pytest
import torch
from ray.rllib.core.rl_module import RLModule

from rllib_arrow.algorithms.acting import ActingPolicy
from tests.algorithms.tiny import METHODS, tiny_config, train

B, T = 3, 5
POLICY = "learner_group/learner/rl_module/default_policy"


@pytest.fixture(scope="module", params=METHODS)
def module(request, tmp_path_factory, ray_two_cpus) -> RLModule:
    """A module restored by RLlib alone, after an epoch of training."""
    config = tiny_config(request.param).evaluation(evaluation_interval=None)
    algorithm = config.build_algo()
    train(algorithm, 1)
    checkpoint = tmp_path_factory.mktemp("run") / "checkpoint"
    algorithm.save_to_path(str(checkpoint))
    algorithm.stop()
    return RLModule.from_checkpoint(str(checkpoint / POLICY))


@pytest.fixture
def obs() -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.integers(0, 256, (B, T, 16, 16, 3), dtype=np.uint8)


def generator(seed: int = 5) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batched(module: RLModule, copies: int = B) -> dict[str, torch.Tensor]:
    start = module.get_initial_state()
    return {key: torch.stack([value] * copies) for key, value in start.items()}


def assert_equal(left: dict, right: dict) -> None:
    assert set(left) == set(right)
    for key, value in left.items():
        torch.testing.assert_close(value, right[key])


@pytest.mark.parametrize("way", ["forward_inference", "forward_exploration"])
def test_stepping_with_obs_and_state_alone_plays_as_the_env_runner_does(
    module, obs, way
):
    policy = ActingPolicy(module, B, 5)
    draws, state = generator(), batched(module)
    for t in range(T):
        expected = policy(obs[:, t], np.full(B, t == 0))
        batch = {"obs": torch.tensor(obs[:, t]), "state_in": state, "generator": draws}
        out = getattr(module, way)(batch)
        np.testing.assert_array_equal(out["actions"], expected)
        assert out["action_dist_inputs"].shape == (B, module.action_space.n)
        state = out["state_out"]
        assert list(state) == list(module.get_initial_state())
        assert_equal(state, dict(zip(state, policy.state, strict=True)))


def test_a_time_axis_gives_what_single_steps_give(module, obs):
    whole = module.forward_inference(
        {"obs": obs, "state_in": batched(module), "generator": generator()}
    )
    draws, state = generator(), batched(module)
    for t in range(T):
        out = module.forward_inference(
            {"obs": obs[:, t], "state_in": state, "generator": draws}
        )
        state = out["state_out"]
        for key in ("actions", "action_dist_inputs"):
            torch.testing.assert_close(whole[key][:, t], out[key])
    assert_equal(whole["state_out"], state)


def test_an_episode_that_begins_in_the_middle_forgets_what_was_before(module, obs):
    is_first = np.zeros((B, T), bool)
    is_first[:, 2] = True
    batch = {"obs": obs, "state_in": batched(module), "is_first": is_first}
    draws = generator()
    whole = module.forward_inference(batch | {"generator": draws})
    draws = generator()
    module.forward_inference({"obs": obs[:, :2], "generator": draws})
    alone = module.forward_inference({"obs": obs[:, 2:], "generator": draws})
    torch.testing.assert_close(whole["actions"][:, 2:], alone["actions"])
    assert_equal(whole["state_out"], alone["state_out"])


def test_draws_follow_the_logits_and_greedy_takes_the_likeliest(module, obs):
    many = np.repeat(obs[:1, 0], 20_000, axis=0)
    torch.manual_seed(1)
    out = module.forward_inference({"obs": many})
    # A latent is drawn for each copy, so each has its own policy.
    expected = torch.softmax(out["action_dist_inputs"], -1).mean(0)
    seen = np.bincount(out["actions"], minlength=len(expected)) / len(many)
    np.testing.assert_allclose(seen, expected, atol=0.015)
    assert len(np.unique(out["actions"])) > 1

    greedy = module.forward_inference({"obs": many}, greedy=True)
    likeliest = greedy["action_dist_inputs"].argmax(-1)
    torch.testing.assert_close(greedy["actions"], likeliest)
    if module.is_stateful():
        torch.testing.assert_close(greedy["state_out"]["action"], likeliest)


def test_rllibs_action_distribution_takes_the_logits(module, obs):
    out = module.forward_exploration({"obs": obs})
    distribution = module.get_exploration_action_dist_cls().from_logits(
        out["action_dist_inputs"]
    )
    assert distribution.sample().shape == (B, T)


def test_without_a_generator_torchs_own_seed_decides(module, obs):
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(module.forward_exploration({"obs": obs})["actions"])
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_the_actions_played_are_remembered_in_place_of_those_drawn(module, obs):
    played = np.full((B, T), 4)
    drawn = module.forward_inference({"obs": obs, "generator": generator()})
    whole = module.forward_inference(
        {"obs": obs, "actions": played, "generator": generator()}
    )
    if not module.is_stateful():
        torch.testing.assert_close(whole["actions"], drawn["actions"])
        return
    draws, state = generator(), None
    for t in range(T):
        batch = {"obs": obs[:, t], "state_in": state, "generator": draws}
        state = module.forward_inference(batch)["state_out"]
        state["action"] = torch.tensor(played[:, t])
    assert_equal(whole["state_out"], state)
    assert not torch.allclose(drawn["state_out"]["h"], whole["state_out"]["h"])
