import itertools
import pickle

import numpy as np
import pytest
import torch

from rllib_arrow.algorithms.dv3 import learner as learner_module
from rllib_arrow.algorithms.dv3.means import Means
from rllib_arrow.models.rssm import Posterior
from tests.algorithms.dv3_tools import (
    ALL_VARIANTS,
    B,
    T,
    make_learner,
    random_batches,
)


def weights_of(learner) -> dict[str, torch.Tensor]:
    return {key: value.clone() for key, value in learner.net.state_dict().items()}


def changed_parts(learner, before: dict[str, torch.Tensor]) -> set[str]:
    after = learner.net.state_dict()
    return {
        key.split(".")[0] for key in before if not torch.equal(before[key], after[key])
    }


def assert_same_weights(one, other) -> None:
    for (name, a), b in zip(
        one.net.state_dict().items(), other.net.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b), name


def test_an_epoch_takes_its_batches_and_returns_finite_plain_floats():
    learner = make_learner()
    batches, seen = random_batches(), []
    counted = (seen.append(1) or batch for batch in batches)
    progress = []
    metrics = learner.learn_epoch(0, counted, lambda *done: progress.append(done))
    assert len(seen) == learner.config.minibatches().count == 5
    assert progress == [(n, 5) for n in range(1, 6)]
    assert all(type(v) is float and np.isfinite(v) for v in metrics.values())
    for name in ("world_model_loss", "kl", "policy_entropy", "return_range"):
        assert name in metrics
    assert {"updates_per_s", "learn_s", "critic_grad_norm"} <= set(metrics)


def test_interleaved_trains_everything_on_every_batch():
    learner = make_learner(interleaved=True)
    assert learner.config.minibatches().count == 3
    before = weights_of(learner)
    learner.learn_epoch(0, itertools.islice(random_batches(), 3))
    steps = {
        name: float(next(iter(optimizer.state.values()))["step"])
        for name, optimizer in learner._named_optimizers.items()
    }
    assert set(steps.values()) == {3.0}
    assert {"encoder", "rssm", "decoder", "actor", "critic"} <= changed_parts(
        learner, before
    )


def test_each_phase_changes_its_own_networks_only():
    world_model = make_learner(actor_critic_updates=0)
    before = weights_of(world_model)
    world_model.learn_epoch(0, random_batches())
    assert changed_parts(world_model, before) == {
        "encoder",
        "rssm",
        "decoder",
        "reward_head",
        "continue_head",
    }
    actor_critic = make_learner(world_model_updates=0)
    # A reward head that says zero everywhere gives the actor nothing to learn.
    with torch.no_grad():
        actor_critic.net.reward_head[-1].weight.normal_(std=0.1)
    before = weights_of(actor_critic)
    actor_critic.learn_epoch(0, random_batches())
    assert changed_parts(actor_critic, before) == {
        "actor",
        "critic",
        "slow_critic",
        "return_range",
    }


def test_world_model_losses_do_not_reach_later_rows_backwards():
    """The loss of row t depends on rows up to t only."""
    learner = make_learner()
    batch = {k: learner._to_device(v) for k, v in next(random_batches()).items()}
    states = []
    for change in (False, True):
        if change:
            batch["obs"][3:] = 0
            batch["actions"][3:] = 0
        learner._generator = torch.Generator().manual_seed(0)
        states.append(learner._posterior(batch)[1].states)
    assert torch.equal(states[0][:3], states[1][:3])
    assert not torch.equal(states[0][3:], states[1][3:])


def test_same_seed_same_numbers_whatever_the_global_stream_does():
    torch.manual_seed(0)
    one = make_learner()
    torch.manual_seed(1)
    other = make_learner()
    assert_same_weights(one, other)
    first = one.learn_epoch(0, random_batches())
    torch.rand(100)
    second = other.learn_epoch(0, random_batches())
    assert_same_weights(one, other)
    assert first["world_model_loss"] == second["world_model_loss"]
    assert first["actor_loss"] == second["actor_loss"]


def test_building_and_learning_leave_the_global_stream_alone():
    learner = make_learner()
    before = torch.get_rng_state()
    learner.learn_epoch(0, random_batches())
    assert torch.equal(before, torch.get_rng_state())


def test_other_seeds_and_other_epochs_draw_other_numbers():
    losses = [
        make_learner(seed=seed).learn_epoch(epoch, random_batches())["kl"]
        for seed, epoch in ((3, 0), (3, 1), (4, 0))
    ]
    assert len(set(losses)) == 3


@pytest.mark.parametrize("carry", ["as is", "pickled", "read-only"])
def test_a_restored_learner_continues_bit_for_bit(carry):
    one = make_learner()
    one.learn_epoch(0, random_batches(0))
    state = one.get_state()
    if carry == "pickled":
        state = pickle.loads(pickle.dumps(state))
    if carry == "read-only":
        for array in _arrays(state):
            array.flags.writeable = False
    one.learn_epoch(1, random_batches(1))
    other = make_learner(seed=99)
    other.config.seed = 3
    other.set_state(state)
    other.learn_epoch(1, random_batches(1))
    assert_same_weights(one, other)
    for name, optimizer in one._named_optimizers.items():
        peer = other._named_optimizers[name]
        pairs = zip(optimizer.state.values(), peer.state.values(), strict=True)
        for mine, theirs in pairs:
            assert all(torch.equal(mine[key], theirs[key]) for key in mine)


def _arrays(tree):
    if isinstance(tree, np.ndarray):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from _arrays(value)


def test_a_state_does_not_change_when_the_learner_goes_on():
    learner = make_learner()
    learner.learn_epoch(0, random_batches())
    state = learner.get_state()
    kept = pickle.dumps(state["optimizer"])
    fresh = make_learner()
    fresh.set_state(state)
    learner.learn_epoch(1, random_batches())
    fresh.learn_epoch(1, random_batches())
    assert pickle.dumps(state["optimizer"]) == kept


def test_a_learner_goes_back_to_an_older_state_too():
    learner = make_learner()
    learner.learn_epoch(0, random_batches())
    state, before = learner.get_state(), weights_of(learner)
    learner.learn_epoch(1, random_batches())
    learner.set_state(state)
    assert changed_parts(learner, before) == set()


def test_a_loss_that_is_not_finite_stops_the_epoch_in_one_line():
    learner = make_learner()

    def poisoned():
        for number, batch in enumerate(random_batches()):
            if number == 1:
                batch["rewards"][0, 0] = np.nan
            yield batch

    words = "world_model_loss .nan. is not finite at update 1 of epoch 7"
    with pytest.raises(FloatingPointError, match=words) as error:
        learner.learn_epoch(7, poisoned())
    assert "\n" not in str(error.value)


def test_means_are_means_and_name_the_first_bad_update():
    means = Means(epoch=2)
    for value in range(120):
        means.add({"a": torch.tensor(float(value)), "b": torch.tensor(1.0)})
    assert means.result() == {"a": 59.5, "b": 1.0}
    assert Means(0).result() == {}
    bad = Means(epoch=2)
    with pytest.raises(FloatingPointError, match=r"a \(inf\).*update 60 of epoch 2"):
        for value in range(120):
            number = float("inf") if value in (60, 70) else 0.0
            bad.add({"a": torch.tensor(number)})


def test_too_few_batches_are_reported():
    with pytest.raises(RuntimeError, match="gave 2 batches of the 5 needed"):
        make_learner().learn_epoch(0, itertools.islice(random_batches(), 2))


def test_return_range_is_a_running_mean_of_percentiles():
    learner = make_learner()
    decay = learner.config.return_normalization_decay
    low = high = 0.0
    rng = np.random.default_rng(0)
    for _ in range(5):
        returns = rng.normal(size=(7, 9)).astype(np.float32) * 50
        found = learner._track_return_range(torch.tensor(returns)).item()
        low = decay * low + (1 - decay) * np.percentile(returns, 5)
        high = decay * high + (1 - decay) * np.percentile(returns, 95)
        assert found == pytest.approx(high - low, rel=1e-4)


def test_the_slow_critic_follows_with_its_decay():
    learner = make_learner(slow_critic_decay=0.9)
    with torch.no_grad():
        for fast in learner.net.critic.parameters():
            fast.fill_(1.0)
        for slow in learner.net.slow_critic.parameters():
            slow.fill_(0.0)
    learner._move_slow_critic()
    learner._move_slow_critic()
    for slow in learner.net.slow_critic.parameters():
        torch.testing.assert_close(slow, torch.full_like(slow, 0.19))


def test_dream_starts_are_drawn_without_repeats_and_keep_their_flags():
    learner = make_learner(dream_starts=10)
    learner._generator = torch.Generator().manual_seed(0)
    rows = torch.arange(T * B).view(T, B, 1).float()
    posterior = Posterior(rows, rows, rows)
    is_terminated = torch.arange(T * B).view(T, B) % 3 == 0
    states, goes_on = learner._draw_starts(posterior, is_terminated)
    assert len(states[:, 0].unique()) == 10
    assert torch.equal(goes_on, states[:, 0] % 3 != 0)
    learner.config.dream_starts = 0
    states, _ = learner._draw_starts(posterior, is_terminated)
    assert torch.equal(states[:, 0], torch.arange(T * B).float())


def test_gradients_are_clipped_to_the_configured_norm():
    learner = make_learner(world_model_grad_clip_by_global_norm=1e-3)
    metrics = learner.learn_epoch(0, random_batches())
    optimizer = learner.get_optimizer("default_policy", "world_model")
    squares = sum(
        float(param.grad.square().sum())
        for param in optimizer.param_groups[0]["params"]
    )
    assert metrics["world_model_grad_norm"] > 1.0
    assert squares**0.5 == pytest.approx(1e-3, rel=1e-3)


def test_mixed_precision_gives_nearly_the_same_losses():
    plain = make_learner().learn_epoch(0, random_batches())
    mixed = make_learner(mixed_precision=True).learn_epoch(0, random_batches())
    for name in ("image_loss", "reward_loss", "critic_loss", "policy_entropy"):
        assert mixed[name] == pytest.approx(plain[name], rel=0.02)


def test_all_variants_of_the_model_learn_together_and_differ_from_the_papers():
    variants = make_learner(**ALL_VARIANTS)
    before = weights_of(variants)
    found = variants.learn_epoch(0, random_batches())
    after = variants.net.state_dict()
    for name in ("rssm.initial_h", "rssm.gru.linear.weight", "rssm.posterior_x.weight"):
        assert not torch.equal(before[name], after[name]), name
    assert found["kl"] != make_learner().learn_epoch(0, random_batches())["kl"]


def test_the_reward_loss_has_a_weight():
    for scale in (1.0, 3.0):
        learner = make_learner(actor_critic_updates=0, reward_loss_scale=scale)
        found = learner.learn_epoch(0, random_batches())
        total = (
            found["image_loss"]
            + scale * found["reward_loss"]
            + found["continue_loss"]
            + 0.5 * found["dynamics_loss"]
            + 0.1 * found["representation_loss"]
        )
        assert found["world_model_loss"] == pytest.approx(total, rel=1e-5)


def test_every_weight_learns_in_mixed_precision():
    learner = make_learner(mixed_precision=True)
    before = {name: w.detach().clone() for name, w in learner.net.named_parameters()}
    learner.learn_epoch(0, random_batches())
    learner.learn_epoch(1, random_batches(1))
    still = {n for n, w in learner.net.named_parameters() if torch.equal(w, before[n])}
    assert {name for name in still if not name.startswith("slow_critic")} == set()


def test_a_state_of_a_gpu_is_taken_over_for_the_device_at_hand():
    learner = make_learner()
    learner.learn_epoch(0, random_batches())
    state = learner.get_state()
    for optimizer in state["optimizer"].values():
        for group in optimizer["state"]["param_groups"]:
            group["capturable"] = True
    learner.set_state(state)
    learner.learn_epoch(1, random_batches(1))
    groups = [g for o in learner._named_optimizers.values() for g in o.param_groups]
    assert not any(group["capturable"] for group in groups)


def test_each_optimiser_has_its_own_learning_rate_and_epsilon():
    rates = {"world_model_lr": 1e-3, "actor_lr": 2e-3, "critic_lr": 3e-3}
    learner = make_learner(**rates, rehearsal_interval=1, rehearsal_scale=0.5)
    found = {
        name.removeprefix("default_policy_"): (group["lr"], group["eps"])
        for name, optimizer in learner._named_optimizers.items()
        for group in optimizer.param_groups
    }
    assert found == {
        "world_model": (1e-3, 1e-8),
        "actor": (2e-3, 1e-5),
        "critic": (3e-3, 1e-5),
        "rehearsal": (1e-3, 1e-5),
    }


def test_learners_in_step_dream_apart(monkeypatch):
    seeds = []
    for number in (0, 1):
        learner = make_learner()
        monkeypatch.setattr(learner_module, "rank", lambda number=number: number)
        learner.learn_epoch(4, random_batches())
        seeds.append(learner._generator.initial_seed())
    assert seeds[0] != seeds[1]
