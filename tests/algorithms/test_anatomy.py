"""The parts of DV3 and TES-SAC: each is blamed for its own changes alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from benchmarks.sac import spaces
from rllib_arrow import TESSACConfig
from rllib_arrow.algorithms.dv3.anatomy import DreamerAnatomy
from rllib_arrow.algorithms.tes_sac.anatomy import SoftActorCriticAnatomy
from rllib_arrow.inside.examine import Examiner
from rllib_arrow.inside.probe_set import ProbeSet
from tests.algorithms.dv3_tools import ALL_VARIANTS, make_learner, random_batches

KEPT = {"cka": 1.0, "kl": 0.0, "agreement": 1.0, "drift": 0.0}


def dreamer(**changes):
    """An examiner of a module, the module, and a probe set of it."""
    learner = make_learner(**changes)
    net, start = learner.net, learner._make_module()[DEFAULT_MODULE_ID]
    generator = torch.Generator().manual_seed(0)
    for weight in net.parameters():  # outputs that start at zero say nothing yet
        noise = torch.randn(weight.shape, generator=generator)
        weight.data += 0.05 * noise
    examiner = Examiner(DreamerAnatomy(), net, start, seed=1)
    return examiner, net, examiner.probe_set(next(random_batches(t=12)))


def soft_actor_critic():
    config = TESSACConfig().training(cnn_depth=4, mlp_units=16)
    spec = config.get_rl_module_spec(spaces=spaces(16, 5))
    nets = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        nets.append(spec.build())
    examiner = Examiner(SoftActorCriticAnatomy(), *nets, seed=1)
    return examiner, nets[0], examiner.probe_set(next(random_batches(t=12)))


def moved(examiner, probe, before) -> set[str]:
    """The parts whose measures are not those of before."""
    after = examiner.drift(probe)
    return {now.part for then, now in zip(before, after, strict=True) if then != now}


@torch.no_grad()
def shift(*parts):
    for part in parts:
        for weight in part.parameters():
            weight += 0.1 * torch.randn_like(weight)


@pytest.mark.parametrize("variant", [{}, ALL_VARIANTS])
def test_nothing_has_moved_from_a_probe_set_when_it_is_made(variant):
    examiner, _, probe = dreamer(**variant)
    found = examiner.drift(probe)
    for part, measure, value in found:
        if measure in KEPT:
            assert value == pytest.approx(KEPT[measure], abs=1e-9), (part, measure)
    untrained = examiner.untrained(probe)
    assert [f[:2] for f in untrained] == [f[:2] for f in found]
    assert untrained != found


def test_each_part_of_the_world_model_is_blamed_for_itself_and_the_agent_for_all():
    torch.manual_seed(0)
    alone = {
        "encoder": lambda net: [net.encoder],
        "recurrence": lambda net: [net.rssm.gru],
        "posterior": lambda net: [net.rssm.posterior_out],
        "prior": lambda net: [net.rssm.prior],
        "reward": lambda net: [net.reward_head],
        "continuation": lambda net: [net.continue_head],
        "actor": lambda net: [net.actor],
        "critic": lambda net: [net.critic],
    }
    acts = {"encoder", "recurrence", "posterior", "actor"}
    for part, parts_of in alone.items():
        examiner, net, probe = dreamer()
        before = examiner.drift(probe)
        shift(*parts_of(net))
        blamed = {part, "agent"} if part in acts else {part}
        assert moved(examiner, probe, before) == blamed, part


def test_each_part_of_sac_is_blamed_for_itself():
    torch.manual_seed(0)
    examiner, net, probe = soft_actor_critic()
    before = examiner.drift(probe)
    for part, measure, value in before:
        assert value == pytest.approx(KEPT[measure], abs=1e-9), (part, measure)
    shift(net.qf)
    assert moved(examiner, probe, before) == {"critic"}
    before = examiner.drift(probe)
    shift(net.pi_encoder)
    assert moved(examiner, probe, before) == {"encoder", "agent"}


def test_errors_of_the_heads_are_against_the_rewards_and_ends_of_the_rows():
    examiner, _, probe = dreamer()
    found = probe.answers
    rows = {k: v.swapaxes(0, 1) for k, v in probe.rows.items()}
    errors = {(f.part, f.measure): f.value for f in examiner.drift(probe)}
    reward = np.abs(found["reward"] - rows["rewards"].reshape(-1)).mean()
    assert errors["reward", "error"] == pytest.approx(reward)
    goes_on = 1.0 - rows["is_terminated"].reshape(-1)
    error = np.abs(found["continuation"] - goes_on).mean()
    assert errors["continuation", "error"] == pytest.approx(error)


def test_plasticity_sees_a_unit_that_died_and_weights_that_moved():
    examiner, net, probe = dreamer()
    before = {f[:2]: f.value for f in examiner.plasticity(probe.rows)}
    names = {part for part, _ in before}
    assert names == set(DreamerAnatomy().networks(net))
    assert {m for _, m in before} == {
        *("dormant", "effective_rank", "weight_norm", "distance")
    }
    norm = net.actor[1]
    with torch.no_grad():
        norm.weight[:16] = 0.0  # of the 64 units of its one hidden layer
        norm.bias[:16] = 0.0
    after = {f[:2]: f.value for f in examiner.plasticity(probe.rows)}
    assert after["actor", "dormant"] == before["actor", "dormant"] + 0.25
    assert after["actor", "effective_rank"] < before["actor", "effective_rank"]
    assert after["critic", "dormant"] == before["critic", "dormant"]
    assert not any(layer._forward_hooks for layer in net.modules())


def test_plasticity_is_the_same_where_pictures_are_computed_in_cpp():
    examiner, net, probe = dreamer()
    before = list(examiner.plasticity(probe.rows))
    for network in (net.encoder, net.decoder):
        network.is_native = True
    after = list(examiner.plasticity(probe.rows))
    assert [f[:2] for f in after] == [f[:2] for f in before]
    assert [f.value for f in after] == pytest.approx([f.value for f in before])
    assert net.encoder.is_native and net.decoder.is_native


def test_a_fresh_network_is_at_its_start():
    learner = make_learner()
    start = learner._make_module()[DEFAULT_MODULE_ID]
    examiner = Examiner(DreamerAnatomy(), learner.net, start, seed=1)
    rows = next(random_batches())
    found = {f[:2]: f.value for f in examiner.plasticity(rows)}
    assert all(v == 0 for (_, measure), v in found.items() if measure == "distance")


def test_looking_draws_nothing_from_torchs_own_stream_and_changes_no_weight():
    examiner, net, probe = dreamer()
    state, weights = torch.random.get_rng_state(), [*map(torch.clone, net.parameters())]
    examiner.probe_set(probe.rows)
    list(examiner.plasticity(probe.rows))
    examiner.strip(probe)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(map(torch.equal, weights, net.parameters()))


def test_a_probe_set_comes_back_from_its_bytes_as_it_was():
    examiner, _, probe = dreamer()
    again = ProbeSet.from_bytes(probe.to_bytes())
    assert examiner.drift(again) == examiner.drift(probe)
    for then, now in zip(probe, again, strict=True):
        assert then.keys() == now.keys()
        assert all(np.array_equal(then[k], now[k]) for k in then)


def test_a_strip_has_truth_reconstruction_and_dream_below_each_other():
    examiner, _, probe = dreamer()
    image = examiner.strip(probe)
    assert image.shape == (2 * 3 * 16 + 2, 12 * 16, 3)
    calm = probe.rows["is_first"][:, 1:].sum(1).argsort(kind="stable")[0]
    assert np.array_equal(image[:16, :16], probe.rows["obs"][calm, 0])
