"""Joins a Ray cluster, or starts one of our own."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import socket
import tempfile
from typing import Any

import ray

from rllib_arrow import register
from rllib_arrow.errors import UserError, one_line
from rllib_arrow.experiments.signals import starting_ray
from rllib_arrow.ray_private import stay_on_loopback

CONNECT_S = 10.0

# Environment variables against Ray's own chatter, none of which a user can act upon.
NO_CHATTER = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}

# Tune writes down which checkpoints there are every ten seconds, while old ones are
# deleted at once: after a kill it would know only of one that is gone.
LISTS_WRITTEN_AT_ONCE = {"TUNE_GLOBAL_CHECKPOINT_S": "1"}


def connect(debug: bool = False) -> None:
    """Joins the cluster that RAY_ADDRESS names, or starts one on this machine."""
    register()
    variables = LISTS_WRITTEN_AT_ONCE if debug else LISTS_WRITTEN_AT_ONCE | NO_CHATTER
    for key, value in variables.items():
        os.environ.setdefault(key, value)
    if ray.is_initialized():
        return
    level = logging.INFO if debug else logging.ERROR
    address = os.environ.get("RAY_ADDRESS")
    own: dict[str, Any] = {}
    if not address:
        # Ray guards a cluster with a token, which it would leave in the home directory
        # for other processes to find. This cluster is ours alone: so is its token.
        if not any(key.startswith("RAY_AUTH_") for key in os.environ):
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        stay_on_loopback()
        own = {
            "address": "local",
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": _private_directory(keep=debug),
        }
    else:
        _check_reachable(address)
    try:
        with starting_ray():
            ray.init(log_to_driver=debug, logging_level=level, **own)
    except Exception as error:  # which Ray raises where its processes are too slow
        reason = one_line(error)
        if address:
            raise UserError(f"RAY_ADDRESS={address}: no cluster: {reason}") from error
        problem = "Ray did not start on this machine; if it is busy, try again"
        raise UserError(f"{problem} ({reason})") from error
    if not debug:
        # A failed trial's traceback stands in its error.txt; its reason is shown.
        logging.getLogger("ray.tune").setLevel(logging.CRITICAL)


def _private_directory(keep: bool) -> str | None:
    """Returns a directory for Ray's session that no other user can look into.

    Ray lets everybody write to what it makes, so that has to stand below a directory
    of our own, which goes when the process ends (unless Ray's logs in it are wanted).
    """
    if os.environ.get("RAY_TMPDIR"):
        return None  # the user's own choice
    # Ray's sockets stand in there, and their names may not be long.
    place = tempfile.gettempdir()
    private = tempfile.mkdtemp(
        prefix="rllib-", dir=place if len(place) < 30 else "/tmp"
    )

    def remove() -> None:
        ray.shutdown()
        shutil.rmtree(private, ignore_errors=True)

    if not keep:
        atexit.register(remove)
    return f"{private}/ray"


def _check_reachable(address: str) -> None:
    """Refuses a cluster that nobody answers for; Ray would try for 90 seconds."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # a word such as `auto`, which Ray understands
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"RAY_ADDRESS={address}: no cluster: {error}") from error
