"""The networks and how they act."""

import math

import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.algorithms.sac.sac_learner import ACTION_PROBS, ACTION_PROBS_NEXT
from ray.rllib.core import DEFAULT_MODULE_ID

from benchmarks.sac import build_ours, spaces
from rllib_arrow import TESSACConfig
from rllib_arrow.algorithms.tes_sac.rl_module import PixelEncoder, PixelSACCatalog

POLICIES = (ACTION_PROBS, ACTION_PROBS_NEXT)


def small_config() -> TESSACConfig:
    return TESSACConfig().training(cnn_depth=4, mlp_units=16)


def acting_module(config: TESSACConfig, side: int = 16):
    spec = config.get_rl_module_spec(spaces=spaces(side, 6), inference_only=True)
    return spec.build()


@pytest.mark.parametrize(("side", "layers"), [(16, 2), (32, 3), (64, 4)])
def test_encoder_halves_images_down_to_four_by_four(side, layers):
    encoder = PixelEncoder((side, side, 3), 4)
    convolutions = [m for m in encoder.layers if isinstance(m, torch.nn.Conv2d)]
    assert [c.out_channels for c in convolutions] == [4 * 2**i for i in range(layers)]
    obs = torch.zeros(2, side, side, 3, dtype=torch.uint8)
    assert encoder({"obs": obs})["encoder_out"].shape == (2, encoder.units)
    assert encoder.units == 16 * 4 * 2 ** (layers - 1)


def test_at_the_papers_scale_the_policy_goes_from_4096_over_twice_512_to_the_actions():
    spec = TESSACConfig().get_rl_module_spec(spaces=spaces(64, 18), inference_only=True)
    module = spec.build()
    linear = [m for m in module.pi.modules() if isinstance(m, torch.nn.Linear)]
    sizes = [(m.in_features, m.out_features) for m in linear]
    assert sizes == [(4096, 512), (512, 512), (512, 18)]


def test_encoder_takes_scaled_floats_for_the_bytes_they_stand_for():
    encoder = PixelEncoder((16, 16, 3), 4)
    obs = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), np.uint8)
    scaled = torch.tensor(obs.astype(np.float32) / np.float32(255))
    outputs = [encoder({"obs": x})["encoder_out"] for x in (torch.tensor(obs), scaled)]
    torch.testing.assert_close(*outputs)


def test_actions_are_drawn_from_the_policy_with_the_given_generator_alone():
    module = acting_module(small_config())
    rng = np.random.default_rng(0)
    one = rng.integers(0, 256, (1, 16, 16, 3), np.uint8)
    obs, first = np.repeat(one, 20_000, axis=0), np.zeros(20_000, bool)
    state = torch.random.get_rng_state()

    def draw(seed):
        generator = torch.Generator().manual_seed(seed)
        actions, after = module.act(
            obs, module.initial_state(len(obs)), first, generator
        )
        assert after == () and actions.dtype == torch.int64
        return actions.numpy()

    actions = draw(1)
    np.testing.assert_array_equal(actions, draw(1))
    assert (actions != draw(2)).any()
    torch.testing.assert_close(torch.random.get_rng_state(), state)
    logits = module.forward_inference({"obs": torch.tensor(one)})["action_dist_inputs"]
    expected = torch.softmax(logits, -1).detach().numpy()[0]
    seen = np.bincount(actions, minlength=6) / len(actions)
    np.testing.assert_allclose(seen, expected, atol=0.015)


def test_an_acting_copy_has_the_policy_alone_and_acts_as_the_learner_would():
    learner = build_ours(small_config())
    module = learner.module[DEFAULT_MODULE_ID]
    acting = acting_module(small_config())
    acting.set_state(module.get_state(inference_only=True))
    parts = {name.split(".")[0] for name, _ in acting.named_parameters()}
    assert parts == {"pi_encoder", "pi"}
    obs = np.random.default_rng(1).integers(0, 256, (64, 16, 16, 3), np.uint8)
    actions = [
        m.act(obs, (), np.zeros(64, bool), torch.Generator().manual_seed(5))[0]
        for m in (module, acting)
    ]
    torch.testing.assert_close(*actions)


def test_with_a_logit_gap_every_way_to_act_keeps_all_actions_possible():
    config = small_config().training(max_logit_gap=3.0)
    module = build_ours(config).module[DEFAULT_MODULE_ID]
    with torch.no_grad():
        for parameter in module.pi.parameters():
            parameter *= 100.0
    rng = np.random.default_rng(2)
    obs = torch.tensor(rng.integers(0, 256, (32, 16, 16, 3), np.uint8))
    logits = module.forward_inference({"obs": obs})["action_dist_inputs"]
    output = module.forward_train({"obs": obs, "new_obs": obs})
    for probs in (torch.softmax(logits, -1), *(output[key] for key in POLICIES)):
        ratio = probs.amax(-1) / probs.amin(-1)
        torch.testing.assert_close(ratio, torch.full((32,), math.exp(3.0)))
    drawn, _ = module.act(obs.repeat(200, 1, 1, 1), (), None, torch.Generator())
    assert all(len(set(drawn[row::32].tolist())) == 6 for row in range(32))


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        (gym.spaces.Box(0, 1, (4,)), gym.spaces.Discrete(2), "must be images"),
        (gym.spaces.Box(0, 1, (16, 16, 3)), gym.spaces.Box(0, 1, (2,)), "Discrete"),
        (gym.spaces.Box(0, 1, (20, 20, 3)), gym.spaces.Discrete(2), "power of two"),
    ],
)
def test_spaces_that_do_not_fit_are_refused_by_name(observations, actions, message):
    with pytest.raises(ValueError, match=message):
        PixelSACCatalog(observations, actions, {"cnn_depth": 4})
