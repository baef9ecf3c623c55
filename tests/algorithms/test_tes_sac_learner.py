"""The learner: which transitions it learns from, and that it learns as RLlib does."""

import copy
import math
from itertools import cycle

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from benchmarks.sac import build_ours, build_peer, random_rows, rllib_batch
from rllib_arrow import TESSACConfig
from rllib_arrow.algorithms.tes_sac import losses
from rllib_arrow.algorithms.tes_sac.learner import TESSACLearner
from rllib_arrow.algorithms.tes_sac.rl_module import RAW_LOGITS
from rllib_arrow.algorithms.tes_sac.transitions import to_transitions

CPU = torch.device("cpu")
BATCH = 16


def small_config(**settings) -> TESSACConfig:
    settings = {"updates_per_epoch": 3, "cnn_depth": 4, "mlp_units": 16} | settings
    return TESSACConfig().training(train_batch_size_per_learner=BATCH, **settings)


def rows_from(seed: int, count: int = 3) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [random_rows(rng, BATCH) for _ in range(count)]


def weights_of(learner) -> dict[str, np.ndarray]:
    return learner.module[DEFAULT_MODULE_ID].get_state()


def learn_one(learner: TESSACLearner, rows: dict[str, np.ndarray]) -> dict[str, float]:
    return learner.learn_epoch(0, cycle([rows]))


# Transitions.


def test_a_transition_carries_the_reward_that_arrived_after_its_action():
    rows = rows_from(0)[0]
    rows["rewards"][:] = np.arange(2 * BATCH).reshape(BATCH, 2)
    batch = to_transitions(rows, CPU)
    np.testing.assert_array_equal(batch["rewards"], rows["rewards"][:, 1])
    np.testing.assert_array_equal(batch["actions"], rows["actions"][:, 0])
    np.testing.assert_allclose(batch["obs"], rows["obs"][:, 0] / np.float32(255))
    np.testing.assert_allclose(batch["new_obs"], rows["obs"][:, 1] / np.float32(255))


def test_of_a_terminated_and_a_truncated_episode_only_the_first_is_not_bootstrapped():
    # Two episodes in a stream: o0 o1 o2(terminal) | o3 o4 (truncated) | o5.
    is_first = np.array([1, 0, 0, 1, 0, 1], bool)
    is_terminated = np.array([0, 0, 1, 0, 0, 0], bool)
    rewards = np.array([0, 10, 20, 0, 40, 0], np.float32)

    def pairs(x):
        return np.stack([x[:-1], x[1:]], axis=1)

    batch = to_transitions(
        {
            "obs": np.zeros((5, 2, 16, 16, 3), np.uint8),
            "actions": np.zeros((5, 2), np.int64),
            "rewards": pairs(rewards),
            "is_first": pairs(is_first),
            "is_terminated": pairs(is_terminated),
        },
        CPU,
    )
    #                                       0-1 1-2 2|3 3-4 4|5
    assert batch["weights"].tolist() == [1, 1, 0, 1, 0]
    assert batch["terminateds"].tolist() == [0, 1, 0, 0, 0]
    # The terminal transition has the terminal reward; the truncated one has its own.
    assert batch["rewards"][:2].tolist() == [10, 20]
    assert batch["rewards"][3] == 40


def test_pairs_across_an_episode_boundary_change_nothing():
    full = rows_from(1)[0]
    full["is_first"][BATCH // 2 :, 1] = True
    other = {key: value.copy() for key, value in full.items()}
    rng = np.random.default_rng(5)
    other["obs"][BATCH // 2 :] = rng.integers(0, 256, other["obs"][8:].shape)
    other["actions"][BATCH // 2 :] = 0
    other["rewards"][BATCH // 2 :] = 1e3
    ours, theirs = build_ours(small_config()), build_ours(small_config())
    learn_one(ours, full)
    learn_one(theirs, other)
    for key, value in weights_of(ours).items():
        np.testing.assert_allclose(value, weights_of(theirs)[key], atol=1e-7)


def test_a_boundary_pair_counts_as_if_it_had_not_been_drawn():
    masked = rows_from(1)[0]
    masked["is_first"][BATCH // 2 :, 1] = True
    halved = {key: value[: BATCH // 2] for key, value in masked.items()}
    ours, theirs = build_ours(small_config()), build_ours(small_config())
    metrics, expected = learn_one(ours, masked), learn_one(theirs, halved)
    for key in ("qf_loss", "policy_loss", "alpha_loss", "entropy", "qf_mean"):
        assert metrics[key] == pytest.approx(expected[key], rel=1e-5)


# Learning as RLlib's SAC does, where that is right.


def test_three_steps_move_all_networks_as_rllibs_own_sac_does():
    config = small_config()
    ours, peer = build_ours(config), build_peer(config)
    peer.module[DEFAULT_MODULE_ID].set_state(weights_of(ours))
    batches = rows_from(2)
    before = copy.deepcopy(weights_of(ours))
    ours.learn_epoch(0, iter(batches))
    for rows in batches:
        peer.update(batch=rllib_batch(rows))
    for key, value in weights_of(peer).items():
        np.testing.assert_allclose(weights_of(ours)[key], value, atol=2e-6)
        if "const" not in key:
            assert np.abs(value - before[key]).max() > 1e-6
    alphas = [x.curr_log_alpha[DEFAULT_MODULE_ID].item() for x in (ours, peer)]
    assert alphas[0] == pytest.approx(alphas[1], rel=1e-6)
    assert alphas[0] != pytest.approx(math.log(0.2), abs=1e-4)


def test_no_parameter_belongs_to_two_optimisers_and_none_is_left_out():
    learner = build_ours(small_config())
    stepped = [
        id(param)
        for _, optimizer in learner.get_optimizers_for_module(DEFAULT_MODULE_ID)
        for group in optimizer.param_groups
        for param in group["params"]
    ]
    trainable = {
        id(p) for p in learner.module[DEFAULT_MODULE_ID].parameters() if p.requires_grad
    }
    trainable.add(id(learner.curr_log_alpha[DEFAULT_MODULE_ID]))
    assert len(stepped) == len(set(stepped))
    assert set(stepped) == trainable


@pytest.mark.parametrize(
    ("loss", "moved"),
    [
        ("policy_loss", ("pi_encoder", "pi")),
        ("qf_loss", ("qf_encoder", "qf")),
        ("qf_twin_loss", ("qf_twin_encoder", "qf_twin")),
        ("alpha_loss", ()),
    ],
)
def test_each_loss_reaches_its_own_networks_alone(monkeypatch, loss, moved):
    learner = build_ours(small_config())
    module = learner.module[DEFAULT_MODULE_ID]
    batch = {DEFAULT_MODULE_ID: to_transitions(rows_from(3)[0], CPU)}
    from rllib_arrow.algorithms.tes_sac import losses

    # All losses but one are silenced.
    names = {"qf_loss": 0, "qf_twin_loss": 1}
    critic, calls = losses.critic_loss, []

    def only_one(*args):
        calls.append(critic(*args))
        keep = names.get(loss) == len(calls) - 1
        return calls[-1] * (1.0 if keep else 0.0)

    monkeypatch.setattr(losses, "critic_loss", only_one)
    for name in ("policy_loss", "alpha_loss"):
        if name != loss:
            original = getattr(losses, name)
            monkeypatch.setattr(
                losses, name, lambda *a, original=original: original(*a) * 0.0
            )
    total = learner.compute_losses(
        fwd_out=learner.module.forward_train(batch), batch=batch
    )
    learner.compute_gradients(total)
    for name, param in module.named_parameters():
        touched = param.grad is not None and bool((param.grad != 0).any())
        assert touched == (name.split(".")[0] in moved), name
    grad = learner.curr_log_alpha[DEFAULT_MODULE_ID].grad
    assert bool((grad != 0).any()) == (loss == "alpha_loss")


def test_targets_follow_slowly_and_only_by_tau():
    learner = build_ours(small_config(tau=0.25, updates_per_epoch=1))
    before = copy.deepcopy(weights_of(learner))
    learner.learn_epoch(0, iter(rows_from(4)))
    after = weights_of(learner)
    for name in ("qf_encoder.layers.0.weight", "qf_twin.net.mlp.0.bias"):
        expected = 0.75 * before[f"target_{name}"] + 0.25 * after[name]
        np.testing.assert_allclose(after[f"target_{name}"], expected, rtol=1e-5)


def test_gradients_are_clipped_for_each_optimiser_by_itself():
    learner = build_ours(small_config(grad_clip=1e-3, updates_per_epoch=1))
    metrics = learner.learn_epoch(0, iter(rows_from(4)))
    for name, optimizer in learner.get_optimizers_for_module(DEFAULT_MODULE_ID):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"]]
        norm = torch.sqrt(sum((grad**2).sum() for grad in grads)).item()
        assert metrics[f"{name}_grad_norm"] > 1e-3  # before clipping
        assert norm == pytest.approx(1e-3, rel=2e-3)


# Temperature and schedule.


def test_target_entropy_starts_positive_and_alpha_at_its_initial_value():
    learner = build_ours(small_config())
    metrics = learn_one(learner, rows_from(6)[0])
    assert metrics["target_entropy"] == pytest.approx(0.8 * math.log(6))
    assert learner.entropy_target.target == 0.8 * math.log(6)
    fixed = build_ours(small_config(target_entropy=1.25))
    assert learn_one(fixed, rows_from(6)[0])["target_entropy"] == 1.25


@pytest.mark.parametrize(
    ("target", "reward", "bound"), [(1.7, 20.0, 0.5), (0.01, 0.0, 1e-3)]
)
def test_alpha_stays_within_its_clamp(target, reward, bound):
    config = small_config(
        alpha_lr=0.5,
        actor_lr=1e-2,
        target_entropy=target,
        alpha_min=1e-3,
        updates_per_epoch=40,
    )
    learner = build_ours(config)
    rows = rows_from(7)[0]
    # Where one action is worth much, the entropy falls below its target.
    rows["rewards"][:, 1] = reward * (rows["actions"][:, 0] == 2)
    metrics = learn_one(learner, rows)
    assert (metrics["entropy"] < target) == (bound == 0.5)
    alpha = learner.curr_log_alpha[DEFAULT_MODULE_ID].exp().item()
    assert alpha == pytest.approx(bound)


def test_the_schedule_rests_until_its_first_epoch_and_then_lowers_the_target():
    config = small_config(
        tes_start_epoch=2, tes_period=2, tes_mean_threshold=9.0, tes_std_threshold=9.0
    )
    learner = build_ours(config)
    start = 0.8 * math.log(6)
    targets = [
        learner.learn_epoch(e, iter(rows_from(e)))["target_entropy"] for e in (0, 1)
    ]
    assert targets == pytest.approx([start, start])
    learner.learn_epoch(2, iter(rows_from(2)))
    # Three calm steps: one period of two and one step of the next.
    assert learner.entropy_target.target == pytest.approx(0.98 * start)
    assert learner.entropy_target.calm_steps == 1
    later = learn_one(learner, rows_from(3)[0])
    assert later["target_entropy"] == pytest.approx(0.98 * start)


# Saving, and what can go wrong.


def test_a_restored_learner_continues_bit_for_bit():
    config = small_config(
        tes_start_epoch=0, tes_period=2, tes_mean_threshold=9.0, tes_std_threshold=9.0
    )
    first, second = build_ours(config), build_ours(config)
    first.learn_epoch(0, iter(rows_from(0)))
    second.learn_epoch(0, iter(rows_from(9)))  # gone astray, and as far as the first
    second.learn_epoch(1, iter(rows_from(9)))
    second.set_state(first.get_state())
    for epoch in (1, 2):
        metrics = [
            x.learn_epoch(epoch, iter(rows_from(epoch))) for x in (first, second)
        ]
        for key in metrics[0].keys() - {"learn_s", "updates_per_s"}:
            assert metrics[0][key] == metrics[1][key], key
    for key, value in weights_of(first).items():
        np.testing.assert_array_equal(value, weights_of(second)[key])
    assert first.entropy_target == second.entropy_target


def test_learning_on_leaves_the_state_it_was_restored_from_alone():
    config = small_config()
    first = build_ours(config)
    first.learn_epoch(0, iter(rows_from(0)))
    state = first.get_state()
    results = []
    for _ in range(2):
        restored = build_ours(config)
        restored.set_state(state)
        restored.learn_epoch(1, iter(rows_from(1)))
        results.append(restored.learn_epoch(2, iter(rows_from(2))))
    for key in ("qf_loss", "policy_loss", "alpha_value", "qf_grad_norm"):
        assert results[0][key] == results[1][key], key


def test_weights_come_from_the_runs_seed_and_leave_torchs_stream_alone():
    def build(seed):
        return weights_of(build_ours(small_config().debugging(seed=seed)))

    first, again, other = build(1), build(1), build(2)
    key = "qf_encoder.layers.0.weight"
    np.testing.assert_array_equal(first[key], again[key])
    assert not np.array_equal(first[key], other[key])
    assert not np.array_equal(first[key], first["qf_twin_encoder.layers.0.weight"])


def test_a_loss_that_is_not_finite_stops_the_run_and_spoils_nothing():
    learner = build_ours(small_config())
    before = copy.deepcopy(weights_of(learner))
    rows = rows_from(8)[0]
    rows["rewards"][3, 1] = np.nan
    with pytest.raises(FloatingPointError, match=r"qf_loss .* at update 0 of epoch 4"):
        learner.learn_epoch(4, cycle([rows]))
    for key, value in weights_of(learner).items():
        np.testing.assert_array_equal(value, before[key])


def test_too_few_batches_are_an_error_and_progress_is_told():
    learner = build_ours(small_config())
    told = []
    with pytest.raises(RuntimeError, match="gave 2 batches of the 3"):
        learner.learn_epoch(
            0, iter(rows_from(0, 2)), on_progress=lambda *at: told.append(at)
        )
    assert told == [(1, 3), (2, 3)]


# The limit of the logits.


def test_logits_beyond_their_limit_are_drawn_back_by_learning():
    config = small_config(max_logit_gap=3.0, updates_per_epoch=60, actor_lr=5e-3)
    learner, rows = build_ours(config), rows_from(4)[0]
    module = learner.module[DEFAULT_MODULE_ID]
    with torch.no_grad():
        for parameter in module.pi.parameters():
            parameter *= 20.0

    def excess() -> float:
        transitions = to_transitions(rows, CPU)
        logits = module.forward_train(transitions)[RAW_LOGITS]
        return (losses.spread(logits) - 3.0).clamp(min=0).mean().item()

    before = excess()
    assert before > 10
    costs = learn_one(learner, rows)
    assert excess() < before / 4 and costs["gap_cost"] > 0
