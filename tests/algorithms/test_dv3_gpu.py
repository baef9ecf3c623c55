"""What can be known of a GPU's path without a GPU: devices, recordings, threads."""

import itertools
import threading
import time
from contextlib import nullcontext

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from rllib_arrow.algorithms.dv3 import learner as learner_module
from rllib_arrow.algorithms.dv3.ahead import ready_ahead
from rllib_arrow.algorithms.dv3.cuda_graphs import WARM_UP, RecordedUpdate
from rllib_arrow.algorithms.dv3.gradient_steps import Trains
from tests.algorithms.dv3_tools import ALL_BEYOND, make_learner, random_batches


def fake_update(device: str, net_device: str | None = None) -> None:
    """Takes all updates' forward passes with tensors that are on `device` in name."""
    learner = make_learner(**ALL_BEYOND)
    batches = random_batches(with_policy=True)
    batch = {k: learner._to_device(v) for k, v in next(batches).items()}
    with FakeTensorMode(), torch.no_grad():

        def moved(tensor, to=device):
            return torch.empty(tensor.shape, dtype=tensor.dtype, device=to)

        for module in learner.net.modules():
            tensors = {**module._parameters, **module._buffers}
            module._parameters, module._buffers = {}, {}
            for name, tensor in tensors.items():
                there = net_device or device
                fake = None if tensor is None else moved(tensor, there)
                setattr(module, name, fake)
        learner._device = torch.device(device)
        learner._return_quantiles = moved(learner._return_quantiles)
        learner._uniform = lambda *shape: torch.rand(shape, device=device)
        learner._descend = lambda loss, *names: {}
        batch = {key: moved(value) for key, value in batch.items()}
        learned = learner.take_update(Trains(True, True), batch)
        rehearsed = learner.rehearse(batch)
    told = (*learned[:2], rehearsed)
    found = {str(m.device) for part in told for m in part.values()}
    assert found == {device}


def test_no_tensor_of_an_update_is_made_on_another_device(monkeypatch):
    # A build of torch without CUDA has no such device even for fakes, but it has
    # `meta`, which only autocast does not know.
    monkeypatch.setattr(torch, "autocast", lambda *args, **kwargs: nullcontext())
    fake_update("meta")
    with pytest.raises(Exception, match="device"):
        fake_update("meta", net_device="cpu")


def make_recorded(learner, calls):
    """A recording that runs the update anew on the tensors it was made with."""

    def record(update, inputs, generator):
        assert generator is learner._generator
        results = {}

        def replay():
            calls.append("replayed")
            fresh = update(inputs)
            for key, value in fresh.world_model.items():
                results["told"].world_model[key].copy_(value)

        empty = {name: torch.zeros(()) for name in learner.names}
        results["told"] = learner_module.Learned(empty, {}, None)
        return results["told"], replay

    return record


def test_a_recorded_update_copies_minibatches_in_and_results_out():
    plain, recorded = make_learner(), make_learner()
    trains, calls = Trains(True, False), []
    batches = list(itertools.islice(random_batches(), WARM_UP + 3))

    def take(learner):
        return lambda batch: learner.take_update(trains, batch)

    for learner in (plain, recorded):
        learner._generator.manual_seed(0)
    first = {k: plain._to_device(v) for k, v in batches[0].items()}
    expected = [
        take(plain)({k: plain._to_device(v) for k, v in batch.items()}).world_model
        for batch in batches
    ]
    recorded.names = list(expected[0])
    update = RecordedUpdate(
        take(recorded),
        recorded._generator,
        make_recorded(recorded, calls),
        lambda function, batch: calls.append("warmed up") or function(batch),
    )
    found = [
        update({k: recorded._to_device(v) for k, v in batch.items()}).world_model
        for batch in batches
    ]
    assert calls == ["warmed up"] * WARM_UP + ["replayed"] * 3
    # All of them afterwards: a result must not change when the next update is taken.
    for one, other in zip(expected, found, strict=True):
        assert {k: float(v) for k, v in one.items()} == {
            k: float(v) for k, v in other.items()
        }
    assert set(first) == {"obs", "actions", "rewards", "is_first", "is_terminated"}


def test_an_update_that_cannot_be_recorded_goes_on_as_it_stands(caplog):
    tries = []

    def fail(update, batch, generator):
        tries.append(batch)
        raise RuntimeError("operation not permitted\nwhen stream is capturing")

    update = RecordedUpdate(
        lambda batch: 2 * batch["x"],
        torch.Generator(),
        fail,
        lambda function, batch: function(batch),
    )
    found = [int(update({"x": torch.tensor(i)})) for i in range(WARM_UP + 3)]
    assert found == [2 * i for i in range(WARM_UP + 3)]
    assert len(tries) == 1
    (line,) = caplog.messages
    assert "operation not permitted when stream is capturing" in line


def test_recordings_are_forgotten_with_the_optimiser_states_they_know():
    learner = make_learner()
    learner.learn_epoch(0, random_batches())
    assert learner._updates
    learner.set_state(learner.get_state())
    assert not learner._updates


def test_items_are_made_ready_ahead_and_in_order():
    made = []

    def make_ready(number):
        made.append((number, threading.current_thread().name))
        return number * 10

    ready = ready_ahead(iter(range(6)), make_ready, count=2)
    assert next(ready) == 0
    deadline = time.monotonic() + 10
    while len(made) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(made) >= 3  # the next two, without being asked for
    assert list(ready) == [10, 20, 30, 40, 50]
    assert [number for number, _ in made] == list(range(6))
    assert {name for _, name in made} == {"ready_ahead"}


def test_what_goes_wrong_ahead_is_raised_in_its_turn():
    def make_ready(number):
        return 1 // (2 - number)

    ready = ready_ahead(iter(range(5)), make_ready)
    assert [next(ready), next(ready)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(ready)


def test_a_reader_that_leaves_early_ends_the_thread():
    ready = ready_ahead(itertools.count(), lambda number: number)
    assert next(ready) == 0
    ready.close()
    deadline = time.monotonic() + 10
    while _working() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _working()


def _working() -> bool:
    return any(thread.name == "ready_ahead" for thread in threading.enumerate())
