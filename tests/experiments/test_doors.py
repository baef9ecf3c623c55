"""A local run is closed to the network and to other users; a dead cluster is told."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time

import pytest

from rllib_arrow.errors import UserError
from rllib_arrow.experiments import cluster

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
