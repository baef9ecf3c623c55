"""Compiled updates: the same numbers, no graph break, no wait, and when they are used.

Most tests trace the graphs without translating them to C++ (`aot_eager`), which shows
graph breaks and wrong sums alike in seconds; the slow one compiles for good.
"""

import shutil

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rllib_arrow.algorithms.dv3 import compiling, products, update_parts
from rllib_arrow.algorithms.dv3.learner import DV3Learner
from rllib_arrow.errors import UserError
from rllib_arrow.models.native import build
from tests.algorithms.dv3_tools import (
    ALL_BEYOND,
    ALL_VARIANTS,
    make_learner,
    random_batches,
)
from tests.algorithms.tiny import tiny_config

ALIKE = ("image_loss", "reward_loss", "kl", "critic_loss", "policy_entropy")


@pytest.fixture
def same_products(monkeypatch):
    """On both sides: last digits may turn a draw, and a draw turns weights."""
    monkeypatch.setattr(products, "has_fast_onednn", lambda: False)


@pytest.fixture
def traced(monkeypatch, same_products):
    monkeypatch.setattr(update_parts, "BACKEND", "aot_eager")
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)


def learn(learner: DV3Learner) -> dict[str, float]:
    """One epoch on the same minibatches, whoever learns."""
    batches = random_batches(with_policy=True)
    return learner.learn_epoch(0, batches, rehearsed=random_batches(1))


def assert_alike(one: DV3Learner, other: DV3Learner) -> None:
    metrics = [learn(one), learn(other)]
    for name in ALIKE:
        assert metrics[1][name] == pytest.approx(metrics[0][name], rel=1e-4), name
    pairs = zip(one.net.parameters(), other.net.parameters(), strict=True)
    for mine, theirs in pairs:
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(
    "variant",
    [{}, ALL_BEYOND, ALL_VARIANTS | ALL_BEYOND, {"gru_norm": True}],
    # A variant alone starts from zeros, all of them from a learned state.
    ids=["paper", "beyond", "variants", "gru_norm"],
)
def test_graphs_without_a_break_learn_what_plain_updates_learn(variant):
    compiled = make_learner(use_compile=True, **variant)
    assert compiled.is_about_to_compile
    assert_alike(make_learner(use_compile=False, **variant), compiled)
    assert not compiled.is_about_to_compile


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
def test_a_process_may_compile_for_learners_of_different_settings():
    for settings in ({}, {"mixed_precision": True}):
        learner = make_learner(use_compile=True, **settings)
        learner.learn_epoch(0, random_batches())


@pytest.mark.slow
@pytest.mark.usefixtures("same_products")
def test_compiled_updates_learn_what_plain_updates_learn():
    compiled = make_learner(use_compile=True)
    assert_alike(make_learner(use_compile=False), compiled)
    again = make_learner(use_compile=True)
    learn(again)
    for mine, theirs in zip(
        compiled.net.parameters(), again.net.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
def test_compiled_updates_take_mixed_precision_too():
    plain = make_learner(use_compile=False, mixed_precision=True)
    traced = make_learner(use_compile=True, mixed_precision=True)
    metrics = [one.learn_epoch(0, random_batches()) for one in (plain, traced)]
    for name in ALIKE:
        assert metrics[1][name] == pytest.approx(metrics[0][name], rel=0.02), name


class Waits(TorchDispatchMode):
    """Notes operations that hand a tensor's value to Python, and counts all."""

    def __init__(self):
        super().__init__()
        self.found, self.count = [], 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += 1
        if function is torch.ops.aten._local_scalar_dense.default:
            self.found.append(function)
        return function(*args, **kwargs or {})


def test_an_update_never_waits_for_a_value():
    learner = make_learner(**ALL_BEYOND)
    batches = random_batches(with_policy=True)
    learner.learn_epoch(0, batches, rehearsed=random_batches(1))
    batch = {k: learner._to_device(v) for k, v in next(batches).items()}
    with Waits() as waits:
        _, posterior = learner.update_world_model(batch)
        learner.update_actor_critic(posterior, batch)
        learner.rehearse(batch)
    assert waits.count > 100
    assert not waits.found
    with Waits() as waits:
        batch["rewards"].sum().item()
    assert len(waits.found) == 1


def test_auto_compiles_long_runs_alone():
    config = tiny_config("DV3", epochs_per_task=800)  # 2 x 800 epochs of 7 updates
    assert config.use_compile == "auto"
    assert compiling.wants_compiled(config)
    config.curriculum["epochs_per_task"] = 100
    assert not compiling.wants_compiled(config)
    assert not make_learner().is_compiled
    config.use_compile = True
    assert compiling.wants_compiled(config)


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_auto_does_without_and_true_says_so(monkeypatch):
    monkeypatch.setattr(compiling, "is_worth_compiling", lambda config: True)
    assert not make_learner(use_compile="auto").is_compiled
    with pytest.raises(UserError, match=r"use_compile \(True\).*no C\+\+ compiler"):
        make_learner(use_compile=True)


@pytest.mark.usefixtures("traced")
def test_a_restored_learner_computes_as_the_one_before():
    compiled, plain = make_learner(use_compile=True), make_learner(use_compile=False)
    state = compiled.get_state()
    assert state["compiled"] is True
    restored = make_learner(use_compile=False)
    restored.set_state(state)
    assert restored.is_compiled
    assert isinstance(restored.parts, update_parts.CompiledParts)
    restored.set_state(plain.get_state())
    assert not restored.is_compiled
    # A checkpoint of the time before there was a choice was computed as it stands.
    older = {key: value for key, value in state.items() if key != "compiled"}
    compiled.set_state(older)
    assert not compiled.is_compiled


@pytest.mark.usefixtures("traced")
def test_a_restored_learner_goes_on_to_the_last_digit():
    through = make_learner(use_compile=True)
    through.learn_epoch(0, random_batches(0))
    restored = make_learner(use_compile=True, seed=3)
    restored.set_state(through.get_state())
    for learner in (through, restored):
        learner.learn_epoch(1, random_batches(1))
    pairs = zip(through.net.parameters(), restored.net.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.usefixtures("traced")
def test_a_compiled_run_acts_without_a_compiler_but_is_not_continued(monkeypatch):
    compiled = make_learner(use_compile=True)
    state = compiled.get_state()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    plain = make_learner(use_compile=False, seed=4)
    plain.set_state(state)
    pairs = zip(plain.net.parameters(), compiled.net.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    assert plain.get_state()["compiled"] is True
    weights = plain.get_state(components="rl_module")
    plain.set_state({k: v for k, v in weights.items() if k != "compiled"})
    assert plain.get_state()["compiled"] is True
    with pytest.raises(UserError, match="checkpoint is of a run with compiled"):
        plain.learn_epoch(0, random_batches())


def test_a_compiled_run_goes_on_uncompiled_on_a_gpu():
    state = make_learner().get_state(components="rl_module") | {"compiled": True}
    learner = make_learner()
    learner._device = torch.device("cuda")
    learner.set_state(state)
    assert not learner.is_compiled and not learner._lacks_compiler


def test_a_learner_that_takes_over_a_plain_run_computes_plainly_in_all_its_layers():
    learner = make_learner(use_compile=True)
    assert learner.net.reward_head[0].by_index
    assert learner.net.encoder.is_native and learner.net.decoder.is_native
    learner.set_state(make_learner(use_compile=False).get_state())
    assert not learner.is_compiled and not learner.net.reward_head[0].by_index
    assert not learner.net.encoder.is_native and not learner.net.decoder.is_native


def test_compiled_code_is_kept_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    build.keep_compiled_code()
    folder = str(tmp_path / "rllib_arrow" / "compiled")
    assert build.os.environ["TORCHINDUCTOR_CACHE_DIR"] == folder
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "elsewhere")
    build.keep_compiled_code()
    assert build.os.environ["TORCHINDUCTOR_CACHE_DIR"] == "elsewhere"
    # Where nothing can be kept, torch has a place of its own.
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    build.keep_compiled_code()
    assert "TORCHINDUCTOR_CACHE_DIR" not in build.os.environ
