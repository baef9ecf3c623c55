"""A canary: the first test to fail when an upgrade of Ray renames what we rely on."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
import ray
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.actor_manager import FaultTolerantActorManager
from ray.train._internal.session import _TrainingResult
from ray.tune import Checkpoint, Trainable
from ray.tune.experiment import Trial

import rllib_arrow
from rllib_arrow import ray_private
from rllib_arrow.ray_private import (
    INHERITED,
    TUNE_CHECKPOINT,
    TUNE_LISTS,
    Inherited,
    is_listed,
)

PACKAGE = Path(rllib_arrow.__file__).parent
PUBLIC_OF_NAMEDTUPLES = {"_asdict", "_replace", "_fields", "_make"}


def owner_of(one: Inherited) -> type:
    module, name = one.owner.split(":")
    return getattr(importlib.import_module(module), name)


def assigned(cls: type, name: str) -> bool:
    """Whether the class's own source sets the attribute."""
    return bool(re.search(rf"self\.{name}(: [^=\n]+)? = ", inspect.getsource(cls)))


@pytest.mark.parametrize("one", INHERITED, ids=lambda one: f"{one.owner}.{one.name}")
def test_what_we_inherit_is_there_with_the_parameters_we_expect(one):
    owner, lost = owner_of(one), f"without it: {one.without}"
    if one.parameters is None:
        assert assigned(owner, one.name), lost
        return
    assert one.name in vars(owner), lost
    found = inspect.getattr_static(owner, one.name)
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    shown = []
    for parameter in inspect.signature(found).parameters.values():
        if parameter.name == "_ray_trace_ctx":  # Ray adds it once a class is an actor's
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        star = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        shown.append(star + parameter.name)
    assert ", ".join(shown) == one.parameters, lost


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (EnvRunnerGroup, "_worker_manager"),
        (LearnerGroup, "_worker_manager"),
        (Learner, "_learner_index"),
        (Trainable, "_storage"),
    ],
)
def test_what_we_reach_into_is_there(cls, name):
    assert assigned(cls, name)


def test_groups_know_their_actors_by_number_and_health():
    for name in ("actors", "healthy_actor_ids", "num_healthy_actors"):
        method = getattr(FaultTolerantActorManager, name)
        assert list(inspect.signature(method).parameters) == ["self"]
    method = FaultTolerantActorManager.set_actor_state
    assert list(inspect.signature(method).parameters) == ["self", "actor_id", "healthy"]


def test_tune_calls_its_files_as_we_expect():
    from ray.train._internal.storage import StorageContext
    from ray.tune.execution.tune_controller import TuneController
    from ray.tune.search.basic_variant import BasicVariantGenerator

    writers = (TuneController, BasicVariantGenerator)
    templates = [writer.CKPT_FILE_TMPL for writer in writers]
    assert templates == [f"{start}{{}}.json" for start in TUNE_LISTS]
    assert TUNE_CHECKPOINT.fullmatch(StorageContext._make_checkpoint_dir_name(7))


def test_the_cluster_and_deprecated_settings_can_be_asked_about(ray_two_cpus):
    assert ray_private.autoscaling_limits() == {}  # a local cluster cannot grow
    deprecated = AlgorithmConfig().simple_optimizer
    assert ray_private.is_deprecated(deprecated)
    assert not ray_private.is_deprecated(AlgorithmConfig().train_batch_size)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("TUNE_GLOBAL_CHECKPOINT_S", "tune/constants.py"),
        (
            "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S",
            "tune/constants.py",
        ),
        ("RAY_AIR_NEW_OUTPUT", "air/config.py"),
        ("RAY_USAGE_STATS_ENABLED", "_common/usage/usage_constants.py"),
        ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "_private/utils.py"),
    ],
)
def test_ray_still_reads_the_variables_we_set(name, file):
    assert name in (Path(ray.__file__).parent / file).read_text()


# Nothing is left out of the list.


def private_names(cls: type) -> set[str]:
    """Returns the private names that RLlib's bases of a class define or set."""
    names: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.startswith("ray."):
            names |= {n for n in vars(base) if re.match(r"_[^_]", n)}
            names |= set(
                re.findall(r"self\.(_[a-z]\w*)(?:: [^=\n]+)? = ", _source(base))
            )
    return names


def _source(cls: type) -> str:
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        return ""


def our_classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(rllib_arrow.__path__, "rllib_arrow."):
        for cls in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(cls) and cls.__module__ == module.name:
                yield cls


def test_every_private_name_that_a_class_inherits_is_listed():
    listed = {one.name for one in INHERITED}
    unlisted = set()
    for cls in our_classes():
        inherited = private_names(cls)
        if inherited:
            nodes = list(ast.walk(ast.parse(textwrap.dedent(_source(cls)))))
            used = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
            used |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
            unlisted |= {(cls.__name__, n) for n in used & inherited - listed}
    assert not unlisted


def test_private_names_of_others_are_used_in_that_one_module_only():
    found = set()
    for file in PACKAGE.rglob("*.py"):
        if file.name == "ray_private.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and re.search(r"\._", node.module):
                found.add((file.name, node.module))
            if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr):
                root = node.value
                if isinstance(root, ast.Name) and root.id == "ray":
                    found.add((file.name, f"ray.{node.attr}"))
                elif isinstance(root, ast.Name) and root.id in ("group", "learner"):
                    found.add((file.name, node.attr))
    assert not {f for f in found if f[1] not in PUBLIC_OF_NAMEDTUPLES}


def test_a_list_of_tunes_names_the_checkpoints_it_would_go_on_from():
    trial = Trial("ARROW", stub=True)
    for number in range(3):
        path = f"/storage/run/00000_seed=1/checkpoint_00000{number}"
        result = _TrainingResult(Checkpoint(path), {})
        trial.run_metadata.checkpoint_manager.register_checkpoint(result)
        trial.invalidate_json_state()
        trial.run_metadata.invalidate_cache()
        state = json.dumps(trial.get_json_state()).encode()
        for other in range(5):
            named = PurePosixPath("00000_seed=1", f"checkpoint_00000{other}")
            assert is_listed(state, named) == (other <= number)
        assert not is_listed(state, PurePosixPath("00001_seed=2/checkpoint_000000"))
