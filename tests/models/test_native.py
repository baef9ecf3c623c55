"""The C++ code against the same written with torch."""

import ctypes
import platform

import pytest
import torch
from torch import Tensor

from rllib_arrow.errors import UserError
from rllib_arrow.models import unroll
from rllib_arrow.models.images import Decoder, Encoder
from rllib_arrow.models.native import build
from rllib_arrow.models.native.adam import native_step
from rllib_arrow.models.native.loops import native_dream, native_loops
from rllib_arrow.models.rssm import RSSM
from rllib_arrow.models.size import SIZES, ModelSize
from tests.algorithms.dv3_tools import make_config, make_spec

pytestmark = pytest.mark.skipif(
    build.find_compiler() is None, reason="no C++ compiler here"
)

# No length is a whole number of registers.
ODD = ModelSize(
    latent_groups=3,
    latent_classes=5,
    gru_units=21,
    mlp_units=37,
    mlp_layers=3,
    cnn_depth=5,
)
SIZED = pytest.mark.parametrize("size", [SIZES["nano"], ODD], ids=["nano", "odd"])
STEPS, BATCH = 7, 5


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(build, "WORTH_THREAD", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)


def stir(module: torch.nn.Module) -> None:
    """Takes weights away from ones and zeros, which hide mistakes."""
    with torch.no_grad():
        for param in module.parameters():
            param += 0.2 * torch.randn_like(param)


def made_net(size: ModelSize, **changes):
    net = make_spec(make_config(model_size=size, **changes)).build()
    stir(net)
    return net


def made_rows(size: ModelSize) -> tuple[unroll.Weights, list[Tensor]]:
    """Returns weights and what `steps_forward` takes, with episodes that begin."""
    rssm = RSSM(size, 10, 4)
    stir(rssm)
    keep = (torch.rand(STEPS, BATCH, 1) > 0.3).float()
    keep[0] = 0.0
    parts = [torch.randn(STEPS, BATCH, size.mlp_units) for _ in range(2)]
    noise = torch.rand(STEPS, BATCH, size.latent_groups)
    weights = unroll.Weights(*(w.detach() for w in rssm._step_weights()))
    return weights, [*rssm.initial(BATCH), keep, *parts, noise]


def made_gradients(size: ModelSize, trace: unroll.Trace, keep: Tensor) -> list[Tensor]:
    probs = trace.softmax
    dh, dz = torch.randn(BATCH, size.gru_units), torch.randn(probs.shape[1:])
    return [dh, dz, keep, torch.randn_like(trace.h), torch.randn_like(probs), *trace]


def assert_close(mine, theirs) -> None:
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


# Loops


@SIZED
def test_steps_through_sequences_are_those_of_torch_forth_and_back(size):
    weights, rows = made_rows(size)
    loops = native_loops(size)
    trace = unroll.steps_forward(weights, *rows)
    native = loops.forward(weights, *rows)
    assert torch.equal(native.z, trace.z)
    assert_close(native, trace)
    gradients = made_gradients(size, trace, rows[2])
    assert_close(
        loops.back(weights, *gradients), unroll.steps_back(weights, *gradients)
    )


@SIZED
@pytest.mark.usefixtures("two_threads")
def test_threads_change_no_number(size, monkeypatch):
    weights, rows = made_rows(size)
    loops = native_loops(size)

    def found() -> tuple[Tensor, ...]:
        trace = loops.forward(weights, *rows)
        torch.manual_seed(1)
        return *trace, *loops.back(weights, *made_gradients(size, trace, rows[2]))

    shared = found()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    for one, other in zip(shared, found(), strict=True):
        assert torch.equal(one, other)


@SIZED
def test_a_dream_is_that_of_torch(size):
    net = made_net(size)
    rows = 6
    ones = torch.randint(size.latent_classes, (rows, size.latent_groups))
    z = torch.nn.functional.one_hot(ones, size.latent_classes).float().flatten(1)
    starts = torch.cat([torch.randn(rows, size.gru_units).tanh(), z], -1)
    noise = torch.rand(STEPS, rows, size.latent_groups + 1)
    dream = net.dream(starts, noise)
    states, actions = native_dream(net.rssm, net.actor, starts, noise)
    assert torch.equal(actions, dream.actions)
    torch.testing.assert_close(states, dream.states, rtol=1e-4, atol=1e-5)
    z = states[..., size.gru_units :].unflatten(-1, (*ones.shape[1:], -1))
    assert torch.equal(z.sum(-1), torch.ones_like(z[..., 0]))


def test_draws_are_as_likely_as_they_should_be():
    size = SIZES["nano"]
    net = made_net(size)
    rows = 20_000
    start = torch.zeros(1, size.state_units)
    start[0, size.gru_units :: size.latent_classes] = 1.0
    noise = torch.rand(1, rows, size.latent_groups + 1)
    _, actions = native_dream(net.rssm, net.actor, start.repeat(rows, 1), noise)
    policy = net.actor(start)[0]
    seen = torch.bincount(actions[0], minlength=len(policy)) / rows
    torch.testing.assert_close(seen, policy.detach(), rtol=0, atol=0.02)


def test_weights_that_are_no_numbers_are_passed_on_as_such():
    net = made_net(SIZES["nano"])
    with torch.no_grad():
        net.rssm.gru.bias_ih[0] = float("nan")
    size = net.size
    starts = torch.zeros(3, size.state_units)
    noise = torch.rand(4, 3, size.latent_groups + 1)
    states, actions = native_dream(net.rssm, net.actor, starts, noise)
    assert states[-1].isnan().any()
    assert ((actions >= 0) & (actions < net.num_actions)).all()


def test_numbers_far_apart_overflow_nothing():
    size = SIZES["nano"]
    weights, rows = made_rows(size)
    far = weights._replace(posterior_out_bias=weights.posterior_out_bias * 1000)
    native = native_loops(size).forward(far, *rows)
    trace = unroll.steps_forward(far, *rows)
    assert native.softmax.isfinite().all()
    torch.testing.assert_close(native.softmax, trace.softmax, rtol=1e-3, atol=1e-5)


# Pictures


def pictures_both_ways(side: int, depth: int) -> list[list[Tensor]]:
    """Returns outputs and gradients of encoder and decoder, by torch and by C++."""
    encoder, decoder = (
        Encoder((side, side, 3), depth),
        Decoder(11, (side, side, 3), depth),
    )
    stir(encoder)
    stir(decoder)
    images = torch.rand(7, side, side, 3).permute(0, 3, 1, 2)
    states = torch.randn(7, 11, requires_grad=True)
    params = [*encoder.parameters(), *decoder.parameters(), states]
    weigh = [torch.randn(7, encoder.units), torch.randn(7, 3, side, side)]
    ways = []
    for native in (False, True):
        encoder.is_native = decoder.is_native = native
        outs = encoder(images), decoder(states)
        loss = sum((out * by).sum() for out, by in zip(outs, weigh, strict=True))
        grads = torch.autograd.grad(loss, params)
        if native:  # Adam wants gradients laid out as weights are
            assert [g.stride() for g in grads] == [p.stride() for p in params]
        ways.append([*outs, *grads])
    return ways


@pytest.mark.parametrize(("side", "depth"), [(16, 16), (16, 5), (32, 3)])
def test_pictures_are_encoded_and_decoded_as_by_torch(side, depth):
    by_torch, native = pictures_both_ways(side, depth)
    for one, other in zip(native, by_torch, strict=True):
        scale = other.abs().max().item()
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5 * scale)


@pytest.mark.usefixtures("two_threads")
def test_pictures_may_be_shared_by_threads():
    by_torch, native = pictures_both_ways(16, 5)
    for one, other in zip(native, by_torch, strict=True):
        scale = other.abs().max().item()
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5 * scale)


# Adam


@pytest.mark.parametrize("limit", [0.5, 1000.0], ids=["clipped", "whole"])
def test_steps_of_adam_are_torchs(limit):
    shapes = [(3, 5), (40,), (8, 3, 4, 4)]
    start = [torch.randn(shape) for shape in shapes]
    start[-1] = start[-1].to(memory_format=torch.channels_last)

    def trained(step) -> list[Tensor]:
        params = [torch.nn.Parameter(tensor.clone()) for tensor in start]
        adam = torch.optim.Adam(params, lr=0.1, eps=1e-5, fused=True)
        torch.manual_seed(1)
        norms = []
        for _ in range(5):
            for param in params:
                param.grad = torch.empty_like(param).copy_(torch.randn(param.shape))
            norms.append(step(adam, limit))
        moments = [value for param in params for value in adam.state[param].values()]
        grads = [param.grad for param in params]  # as they were clipped
        return [*norms, *params, *moments, *grads]

    def by_torch(adam: torch.optim.Adam, limit: float) -> Tensor:
        norm = torch.nn.utils.clip_grad_norm_(adam.param_groups[0]["params"], limit)
        adam.step()
        return norm

    for one, other in zip(trained(native_step), trained(by_torch), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_a_gradient_of_another_layout_is_put_right():
    weight = torch.randn(8, 3, 4, 4).to(memory_format=torch.channels_last)
    found = []
    for memory_format in (torch.channels_last, torch.contiguous_format):
        param = torch.nn.Parameter(weight.clone())
        adam = torch.optim.Adam([param], lr=0.1, fused=True)
        for step in range(2):
            torch.manual_seed(step)
            grad = torch.empty_like(param).copy_(torch.randn(param.shape))
            # The first step is torch's, which takes the layout for granted.
            param.grad = grad.contiguous(memory_format=memory_format) if step else grad
            native_step(adam, 1000.0)
        found.append(param)
    assert torch.equal(*found)


# Building


@pytest.fixture
def anew(monkeypatch, tmp_path):
    """A machine that has built nothing yet."""
    monkeypatch.setenv(build.CODE, str(tmp_path / "code"))
    build.library.cache_clear()
    yield tmp_path / "code"
    build.library.cache_clear()


def test_code_is_built_once(anew, monkeypatch):
    assert isinstance(build.library(), ctypes.CDLL)
    (built,) = anew.iterdir()
    build.library.cache_clear()
    monkeypatch.setattr(build, "_compile", None)
    build.library()
    assert list(anew.iterdir()) == [built]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="not a machine with AVX")
@pytest.mark.usefixtures("anew")
def test_processors_without_avx512_compute_the_same(monkeypatch):
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-mno-avx512f"))
    test_steps_through_sequences_are_those_of_torch_forth_and_back(ODD)
    test_a_dream_is_that_of_torch(SIZES["nano"])
    test_pictures_are_encoded_and_decoded_as_by_torch(16, 5)
    test_steps_of_adam_are_torchs(0.5)


def test_code_that_cannot_be_built_is_told_in_a_line(anew, monkeypatch):
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-no-such-flag"))
    with pytest.raises(UserError, match=r"use_compile to false.*no-such-flag"):
        build.library()
    assert list(anew.iterdir()) == []


def test_where_code_cannot_be_built_auto_does_without(anew, monkeypatch, caplog):
    assert build.is_buildable()
    build.library.cache_clear()
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-no-such-flag"))
    assert not build.is_buildable()
    assert "not compiled" in caplog.text and "no-such-flag" in caplog.text


def test_tensors_of_another_layout_are_refused():
    with pytest.raises(ValueError, match="not laid out"):
        build.pointer(torch.rand(3, 4).t())
    with pytest.raises(ValueError, match="not laid out"):
        build.pointer(torch.rand(3).double())
