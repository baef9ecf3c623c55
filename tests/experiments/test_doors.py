"""A local run is closed to the network and to other users; a dead cluster is told."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from rllib_arrow.errors import UserError
from rllib_arrow.experiments import cluster
from rllib_arrow.experiments.cli import main
from tests.algorithms.tiny import tiny_config, train

LOOK = """
import json, os, stat
from pathlib import Path
from rllib_arrow.experiments import cluster
cluster.connect()
import ray
import psutil  # Ray's own

@ray.remote
def work():
    return 1

ray.get(work.remote())
session = Path(ray._private.worker._global_node.get_session_dir_path())
me = psutil.Process()
print(json.dumps({
    "listening": [
        connection.laddr.ip
        for process in (me, *me.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == "LISTEN"
    ],
    "private": [str(p) for p in session.parents if not p.stat().st_mode & 0o077],
}))
"""


# The user of many a container: without HOME, and without a line in /etc/passwd.
HOMELESS = """
import os, pwd, sys

def nobody(uid):
    raise KeyError(uid)

pwd.getpwuid = nobody
del os.environ["HOME"]
sys.argv[0] = "rllib"
from rllib_arrow.experiments.cli import main
sys.exit(main())
"""


def test_a_command_whose_user_has_no_home_stands_in_for_one(monkeypatch, capsys):
    def nobody(uid):
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", nobody)
    monkeypatch.setenv("HOME", "set")  # so that it is put back afterwards
    monkeypatch.delenv("HOME")
    with pytest.raises(RuntimeError):
        Path.home()
    assert main(["example", "list"]) == 0
    assert Path.home().is_dir()  # Ray asks for it when it is imported


@pytest.mark.slow
def test_a_checkpoint_is_evaluated_without_a_home(tmp_path, ray_two_cpus):
    algorithm = tiny_config().build_algo()
    train(algorithm, 1)
    path = algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.stop()
    env = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", HOMELESS, "evaluate", path, "--episodes", "1"],
        capture_output=True,
        text=True,
        env=env | {"HOME": "set"},
    )
    assert done.returncode == 0, done.stderr
    assert "breakout" in done.stdout and "space_invaders" in done.stdout


@pytest.mark.slow
def test_a_local_run_listens_on_loopback_in_a_directory_of_its_own_without_a_home():
    env = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        capture_output=True,
        text=True,
        env=env | {"HOME": "/dev/null/nowhere"},
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert len(seen["listening"]) >= 5
    assert {ip.removeprefix("::ffff:") for ip in seen["listening"]} == {"127.0.0.1"}
    [private] = seen["private"]
    assert not os.path.exists(private)  # it went with the process


def test_a_cluster_that_nobody_answers_for_is_refused_at_once(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setattr(cluster.ray, "is_initialized", lambda: False)
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}", "nobody.invalid:1"):
        monkeypatch.setenv("RAY_ADDRESS", address)
        began = time.monotonic()
        with pytest.raises(UserError, match=f"RAY_ADDRESS={address}: no cluster: "):
            cluster.connect()
        assert time.monotonic() - began < 30


def test_a_machine_too_busy_to_start_ray_is_told_to_try_again(monkeypatch):
    def too_slow(**settings):
        raise Exception("The current node timed out during startup. And so on.")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_TMPDIR", "/nowhere")
    monkeypatch.setattr(cluster, "starting_ray", nullcontext)
    monkeypatch.setattr(cluster, "stay_on_loopback", lambda: None)
    monkeypatch.setattr(cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster.ray, "init", too_slow)
    with pytest.raises(UserError, match=r"busy, try again \(The current node") as told:
        cluster.connect()
    assert "RAY_ADDRESS" not in str(told.value)
