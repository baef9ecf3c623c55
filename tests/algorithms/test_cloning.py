"""Cloning: what is remembered of the policy, at which row, and what it is good for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rllib_arrow.algorithms.dv3.cloning import cloning_losses
from rllib_arrow.algorithms.dv3.learner import DV3Learner
from rllib_arrow.algorithms.env_runner import ContinualEnvRunner
from rllib_arrow.models import distributions
from rllib_arrow.replay.augmented import AugmentedReplay
from rllib_arrow.replay.chunk import Chunk, ChunkWithPolicy
from rllib_arrow.settings import SettingError
from tests.algorithms.tiny import tiny_config
from tests.replay.reference import make_chunk


@pytest.fixture(scope="module")
def firm():
    """Less chance in states: two looks at the same rows see the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributions, "UNIMIX", 1e-4)
        yield


@pytest.fixture(scope="module")
def played(firm):
    """A learner of firm opinions, and a minibatch of what it played and thought."""
    config = tiny_config().training(cloning=True, cloning_value_scale=1.0)
    runner = ContinualEnvRunner(config=config, worker_index=1)
    spec = config.get_rl_module_spec(spaces=runner.get_spaces())
    learner = DV3Learner(config=config, module_spec=spec.as_multi_rl_module_spec())
    learner.build()
    net = learner.net
    with torch.no_grad():
        net.rssm.posterior_out.weight.mul_(300)
        net.actor[-1].weight.mul_(2000)
        net.critic[-1].weight.normal_(std=0.3)
    weights = net.get_state(inference_only=True)
    streams, _ = runner.sample(epoch=1, task="breakout", weights=weights)
    random_play, _ = runner.sample(epoch=0, task="breakout", weights=weights)
    fields = zip(ChunkWithPolicy._fields, zip(*streams, strict=True), strict=True)
    batch = {name: learner._to_device(np.stack(field)) for name, field in fields}
    learner._generator.manual_seed(0)
    with torch.no_grad():
        states = learner._posterior(batch)[1].states
    return learner, states, batch["policy"], random_play


def test_policy_and_value_belong_to_the_row_they_are_stored_with(played):
    learner, states, policy, _ = played
    assert policy.dtype == torch.float16
    assert policy.shape == (*states.shape[:2], learner.net.num_actions + 1)
    sums = policy[..., :-1].float().sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=5e-3)

    def distances(policy):
        _, told = learner.parts.cloning_loss(states, policy)
        return told["cloning_kl"].item(), told["cloning_distance"].item()

    kl, distance = distances(policy)
    for shift in (-1, 1):
        kl_beside, distance_beside = distances(policy.roll(shift, 0))
        assert kl < 0.3 * kl_beside
        assert distance < 0.3 * distance_beside


def test_cloning_a_skills_own_success_keeps_it(played):
    """What noise does to the actor, cloning undoes; cloned off by one, it is lost."""
    learner, states, policy, _ = played
    state = learner.get_state()
    best = policy[..., :-1].argmax(-1)

    def agreement_after_cloning(policy):
        learner.set_state(state)
        optimizer = torch.optim.Adam(learner.net.actor.parameters(), lr=3e-3)
        noise = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for param in learner.net.actor.parameters():
                scale = 0.6 * param.std().nan_to_num(0.0)
                param += scale * torch.randn(param.shape, generator=noise)
        lost = agreement()
        for _ in range(60):
            optimizer.zero_grad()
            learner.parts.cloning_loss(states, policy)[0].backward()
            optimizer.step()
        return lost, agreement()

    def agreement():
        with torch.no_grad():
            return (learner.net.actor(states).argmax(-1) == best).float().mean().item()

    kept = agreement()
    lost, cloned = agreement_after_cloning(policy)
    assert kept > 0.8 and lost < kept - 0.2
    assert cloned > kept - 0.05
    _, off_by_one = agreement_after_cloning(policy.roll(1, 0))
    assert off_by_one < cloned - 0.2


def test_random_play_is_not_cloned(played):
    *_, random_play = played
    assert all(not stream.policy.any() for stream in random_play)
    probs, values = torch.full((5, 3), 1 / 3), torch.ones(5)
    assert cloning_losses(probs, values, torch.zeros(5, 4)) == (0.0, 0.0)


def test_losses_by_hand():
    probs = torch.tensor([[0.5, 0.5], [0.25, 0.75]])
    policy = torch.tensor([[1.0, 0.0, 2.0], [0.25, 0.75, 1.0]])
    kl, distance = cloning_losses(probs, torch.tensor([5.0, 1.0]), policy)
    assert kl.item() == pytest.approx(np.log(2) / 2)
    assert distance.item() == pytest.approx(9 / 2)


def with_policy(chunk: Chunk, units: int) -> ChunkWithPolicy:
    numbers = np.arange(len(chunk.rewards) * units) % 2048  # exact in float16
    policy = numbers.reshape(-1, units).astype(np.float16)
    return ChunkWithPolicy(*chunk, policy)


def test_policies_are_stored_saved_and_counted(tmp_path):
    length, units = 20, 7
    plain, replay = (AugmentedReplay(4, length, 0.5, seed=1) for _ in range(2))
    for serial in range(6):
        chunk = make_chunk(serial, length)
        plain.add(chunk)
        replay.add(with_policy(chunk, units))
    more = replay.stats()["bytes"] - plain.stats()["bytes"]
    assert more == len(replay) * length * units * 2
    replay.save(tmp_path)
    again = AugmentedReplay.load(tmp_path)
    for one in (replay, again):
        one.reseed(3)
    seen = set()
    for _ in range(12):
        draw = replay.draw(3, 5)
        batch, copy = replay.gather(draw), again.sample(3, 5)
        assert all(np.array_equal(batch[name], copy[name]) for name in batch)
        rows = np.arange(5) + draw.starts[:, None]
        wanted = (rows[..., None] * units + np.arange(units)) % 2048
        # Rows of the FIFO buffer are not cloned.
        assert np.array_equal(batch["policy"], wanted * (draw.buffer == "ltdm"))
        seen.add(draw.buffer)
    assert seen == {"fifo", "ltdm"}
    with pytest.raises(ValueError, match="policy has 0 columns; the first chunk had 7"):
        replay.add(make_chunk(9, length))


def test_cloning_needs_a_long_term_buffer():
    for config in (tiny_config("DV3"), tiny_config().training(ltdm_fraction=0.0)):
        with pytest.raises(SettingError, match=r"cloning \(True\) must be false where"):
            config.training(cloning=True).validate()
