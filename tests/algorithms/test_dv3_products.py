"""Who multiplies matrices while an update is computed."""

import pytest
import torch

from rllib_arrow.algorithms.dv3 import products, update_parts
from rllib_arrow.algorithms.dv3.gradient_steps import Trains
from tests.algorithms.dv3_tools import make_learner, random_batches


@pytest.fixture(autouse=True)
def fast_onednn(monkeypatch):
    monkeypatch.setattr(products, "has_fast_onednn", lambda: True)


@pytest.fixture
def not_compiled(monkeypatch):
    monkeypatch.setattr(update_parts, "compiled", lambda function: function)


def library() -> str:
    return torch.backends.mkldnn.matmul.fp32_precision


def libraries_of_an_update(learner, monkeypatch) -> dict[str, str]:
    """Takes an update; returns who multiplied in its parts."""
    seen = {}

    def note(name, function):
        def run(*args):
            seen[name] = library()
            return function(*args)

        return run

    parts = learner.parts
    monkeypatch.setattr(parts, "encode", note("images", parts.encode))
    monkeypatch.setattr(parts, "value_dream", note("heads", parts.value_dream))
    learner.learn_epoch(0, random_batches())
    return seen


@pytest.mark.usefixtures("not_compiled")
def test_onednn_multiplies_in_compiled_updates(monkeypatch):
    before = library()
    learner = make_learner(use_compile=True)
    seen = libraries_of_an_update(learner, monkeypatch)
    assert seen == dict.fromkeys(("images", "heads"), products.BY_ONEDNN)
    assert library() == before


def test_plain_updates_are_left_as_they_are(monkeypatch):
    before = library()
    seen = libraries_of_an_update(make_learner(use_compile=False), monkeypatch)
    assert seen == dict.fromkeys(("images", "heads"), before)


def test_an_update_with_onednn_learns_what_it_learns_with_mkl():
    learners = []
    for library in (products.BY_MKL, products.BY_ONEDNN):
        learner = make_learner(use_compile=False)
        batch = next(random_batches())
        batch = {key: learner._to_device(value) for key, value in batch.items()}
        with products.multiplied_by(library):
            learner.take_update(Trains(True, True), batch)
        learners.append(learner.net.parameters())
    for mine, theirs in zip(*learners, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


def test_the_choice_ends_with_an_error():
    before = library()
    with pytest.raises(ZeroDivisionError), products.multiplied_by(products.BY_ONEDNN):
        assert library() == products.BY_ONEDNN
        raise ZeroDivisionError
    assert library() == before


@pytest.mark.parametrize(
    ("able", "fast"),
    [
        ({"avx512_bw": True}, True),
        ({"avx512_bw": True, "amx_bf16": True}, False),  # it would round there
        ({"avx2": True}, False),
        ({}, False),
    ],
)
def test_products_stay_in_float32(able, fast, monkeypatch):
    monkeypatch.undo()
    products.has_fast_onednn.cache_clear()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able, raising=False)
    assert products.has_fast_onednn() is fast
    products.has_fast_onednn.cache_clear()


def test_onednn_rounds_no_further_than_mkl():
    torch.manual_seed(0)
    a, b = torch.randn(256, 384), torch.randn(384, 128)
    exact = a.double() @ b.double()
    with products.multiplied_by(products.BY_ONEDNN):
        error = (a @ b - exact).abs().max()
    rounded = (a.bfloat16() @ b.bfloat16() - exact).abs().max()
    if not torch.cpu.get_capabilities().get("amx_bf16", False):
        assert error < 1e-3 < rounded
