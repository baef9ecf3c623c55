"""A Ray cluster of several nodes on one machine: each part of a run on its own node."""

from __future__ import annotations

import threading
import time

import pytest
import ray
from ray.cluster_utils import Cluster

from tests.algorithms.tiny import digest, scores, tiny_config, train, weight_sum

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]


@pytest.fixture
def cluster():
    """A head without work, two nodes for runners, one for learners, one for replay."""
    if ray.is_initialized():
        ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.runner_nodes = [
        cluster.add_node(num_cpus=2, resources={"runner": 2}) for _ in range(2)
    ]
    cluster.add_node(num_cpus=2, resources={"learner": 2})
    cluster.add_node(num_cpus=1, resources={"replay": 1})
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def spread_config():
    config = tiny_config().env_runners(num_env_runners=2)
    config.env_runners(custom_resources_per_env_runner={"runner": 1})
    config.learners(num_learners=2, custom_resources_per_learner={"learner": 1})
    config.continual(custom_resources_for_replay={"replay": 1})
    config.evaluation(evaluation_config={"custom_resources_per_env_runner": {}})
    return config


def node_of(_) -> str:
    return ray.get_runtime_context().get_node_id()


def test_a_run_spread_over_nodes_finishes_with_equal_learners(cluster, tmp_path):
    algorithm = spread_config().build_algo()
    train(algorithm, 2)
    # The replay lives on another node than the driver, which writes the checkpoint.
    algorithm.save_to_path(tmp_path)
    assert ray.get(algorithm.replay.node_id.remote()) != node_of(None)
    train(algorithm, 2)
    truth = scores(algorithm), digest(algorithm)
    algorithm.restore_from_path(tmp_path)
    results = train(algorithm, 2)
    assert results[-1]["done"]
    assert (scores(algorithm), digest(algorithm)) == truth
    runners = set(algorithm.env_runner_group.foreach_env_runner(node_of)[1:])
    learners = {call.get() for call in algorithm.learner_group.foreach_learner(node_of)}
    assert not runners & learners and len(learners) == 1
    sums = [call.get() for call in algorithm.learner_group.foreach_learner(weight_sum)]
    assert sums[0] == sums[1]
    algorithm.stop()


def test_a_node_that_goes_away_takes_nothing_with_it(cluster):
    algorithm = spread_config().build_algo()
    train(algorithm, 4)
    undisturbed = scores(algorithm)
    algorithm.stop()

    algorithm = spread_config().build_algo()
    train(algorithm, 1)

    def remove() -> None:
        time.sleep(0.3)
        cluster.remove_node(cluster.runner_nodes[0], allow_graceful=False)

    remover = threading.Thread(target=remove)
    remover.start()
    train(algorithm, 3)
    remover.join()
    assert scores(algorithm) == undisturbed
    algorithm.stop()
