"""Fixtures that more than one folder needs."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest
import ray
import torch

from rllib_arrow.errors import UserError

# Before any test starts Ray: a token that is not left in the home directory, no tables.
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
# Ray's workers are nice to other processes; here everybody waits for them.
os.environ.setdefault("RAY_worker_niceness", "0")
# Sums of floats depend on how many threads share them; the runs compared must not.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skips what needs CoinRun's simulator on machines it is not published for."""
    try:
        return (yield)
    except UserError as error:
        if "needs Procgen, which is published for" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def ray_two_cpus() -> Iterator[None]:
    """One Ray cluster with two CPUs for the whole session."""
    if not ray.is_initialized():
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    yield
    ray.shutdown()
