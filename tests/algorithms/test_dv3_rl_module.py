import numpy as np
import pytest
import torch
from gymnasium import spaces

from rllib_arrow.models.distributions import two_hot_mean
from rllib_arrow.models.images import images_to_float
from tests.algorithms.dv3_tools import (
    ACTIONS,
    ALL_VARIANTS,
    SIDE,
    B,
    T,
    make_config,
    make_learner,
    make_spec,
    random_batches,
)


def make_module(**changes):
    torch.manual_seed(0)
    return make_spec(make_config(), **changes).build()


def test_the_first_policy_is_as_good_as_uniform():
    module = make_module()
    states = torch.randn(500, module.size.state_units)
    assert (module.actor(states) * ACTIONS - 1.0).abs().max() < 0.1


@pytest.mark.parametrize("variant", [{}, ALL_VARIANTS], ids=["paper", "variants"])
def test_acting_step_by_step_gives_the_states_of_the_unrolled_model(variant):
    module = make_spec(make_config(**variant)).build()
    batch = next(random_batches())
    batch["is_first"][:] = False
    batch["is_first"][:, 0] = batch["is_first"][1, 3] = True
    generator = torch.Generator().manual_seed(5)
    noise = torch.rand(T, B, module.size.latent_groups + 1, generator=generator)
    generator.manual_seed(5)
    state, steps, actions = module.initial_state(B), [], []
    for t in range(T):
        taken, state = module.act(
            batch["obs"][:, t], state, batch["is_first"][:, t], generator
        )
        actions.append(taken)
        steps.append(torch.cat(state[:2], dim=-1))
    obs = torch.tensor(batch["obs"]).transpose(0, 1).flatten(0, 1)
    is_first = torch.tensor(batch["is_first"]).t()
    with torch.no_grad():
        unrolled = module.infer_states(
            images_to_float(obs), torch.stack(actions), is_first, noise[..., 1:]
        )
    torch.testing.assert_close(torch.stack(steps), unrolled.states)


def test_a_first_row_acts_as_if_nothing_had_been_before():
    module = make_module()
    obs = next(random_batches())["obs"]
    generator = torch.Generator()
    state = module.initial_state(B)
    for t in range(3):
        _, state = module.act(obs[:, t], state, np.zeros(B, bool), generator)
    is_first = np.array([True] + [False] * (B - 1))
    generator.manual_seed(1)
    _, reset = module.act(obs[:, 3], state, is_first, generator)
    generator.manual_seed(1)
    _, fresh = module.act(obs[:, 3], module.initial_state(B), is_first, generator)
    torch.testing.assert_close(reset[0][0], fresh[0][0])
    assert not torch.allclose(reset[0][1], fresh[0][1])


def test_actions_follow_the_policy_and_only_the_generator():
    module = make_module()
    with torch.no_grad():
        module.actor[-1].weight.zero_()
        module.actor[-1].bias.copy_(torch.tensor([0.5, 0.2, 0.1, 0.1, 0.1]).log())
    obs = np.zeros((4000, SIDE, SIDE, 3), np.uint8)
    drawn = []
    for _ in range(2):
        generator = torch.Generator().manual_seed(2)
        torch.rand(3)
        actions, _ = module.act(
            obs, module.initial_state(4000), np.ones(4000, bool), generator
        )
        drawn.append(actions)
    assert torch.equal(*drawn) and drawn[0].dtype == torch.int64
    shares = np.bincount(drawn[0], minlength=ACTIONS) / 4000
    expected = 0.99 * np.array([0.5, 0.2, 0.1, 0.1, 0.1]) + 0.01 / ACTIONS
    np.testing.assert_allclose(shares, expected, atol=4 * 0.5 / 4000**0.5)


def test_a_dream_follows_the_world_model_and_reaches_the_actor_alone():
    module = make_module()
    generator = torch.Generator().manual_seed(3)
    groups = module.size.latent_groups
    starts = torch.rand(7, module.size.state_units, generator=generator)
    noise = torch.rand(4, 7, groups + 1, generator=generator)
    dream = module.dream(starts, noise)
    assert dream.states.shape == (5, 7, module.size.state_units)
    assert torch.equal(dream.states[0], starts)
    for t in range(4):
        probs = module.actor(dream.states[t])
        torch.testing.assert_close(dream.probs[t], probs)
        index = (probs.double().cumsum(-1) <= noise[t, :, :1].double()).sum(-1)
        assert torch.equal(dream.actions[t], index)
        h = dream.states[t][:, : module.size.gru_units]
        z = dream.states[t][:, module.size.gru_units :]
        step = module.rssm.imagine_step(h, z, dream.actions[t], noise[t, :, 1:])
        torch.testing.assert_close(dream.states[t + 1], torch.cat(step, dim=-1))
    assert not dream.states.requires_grad
    dream.probs.log().sum().backward()
    with_gradient = {n for n, p in module.named_parameters() if p.grad is not None}
    assert with_gradient == {n for n, _ in module.named_parameters() if "actor" in n}


def test_an_acting_copy_is_smaller_and_acts_the_same():
    learner = make_learner()
    weights = learner.net.get_state(inference_only=True)
    torch.manual_seed(9)
    copy = make_spec(make_config(), inference_only=True).build()
    copy.set_state(weights)
    assert set(weights) == set(copy.state_dict())
    assert not hasattr(copy, "decoder") and not hasattr(copy, "critic")
    obs = next(random_batches())["obs"][:, 0]
    results = [
        module.act(
            obs,
            module.initial_state(B),
            np.ones(B, bool),
            torch.Generator().manual_seed(0),
        )
        for module in (learner.net, copy)
    ]
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1][0], results[1][1][0])


def test_the_papers_size_has_about_twenty_million_parameters():
    spec = make_spec(make_config(model_size="S"), side=64, actions=18)
    count = sum(p.numel() for p in spec.build().parameters())
    assert 18e6 < count < 21e6


def test_reward_and_value_start_at_zero():
    module = make_module()
    states = torch.randn(5, module.size.state_units)
    for head in (module.reward_head, module.critic, module.slow_critic):
        found = two_hot_mean(head(states))
        torch.testing.assert_close(found, torch.zeros(5), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"action_space": spaces.Box(0, 1, (2,))}, "action_space .* must be Discrete"),
        ({"observation_space": spaces.Discrete(3)}, "must be images"),
    ],
)
def test_other_spaces_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        make_module(**changes)


def test_rllibs_forward_acts_and_training_through_it_is_refused():
    module = make_module()
    state = dict(zip(("h", "z", "action"), module.initial_state(B), strict=True))
    out = module.forward_exploration(
        {
            "obs": next(random_batches())["obs"][:, 0],
            "state_in": state,
            "is_first": np.ones(B, bool),
            "generator": torch.Generator().manual_seed(0),
        }
    )
    assert out["actions"].shape == (B,) and set(out["state_out"]) == set(state)
    with pytest.raises(NotImplementedError, match="learn_epoch"):
        module.forward_train({})
