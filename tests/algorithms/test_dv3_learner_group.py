"""DV3Learner as RLlib's LearnerGroup runs it: remote, and several in step."""

import numpy as np
import pytest
import torch

from rllib_arrow.algorithms.peers import average
from tests.algorithms.dv3_tools import make_config, make_spec, random_batches

EPOCHS_APART = 100  # the batches of different learners come from different seeds


def make_group(num_learners: int):
    config = make_config()
    config.learners(num_learners=num_learners, num_cpus_per_learner=0.5)
    return config.build_learner_group(rl_module_spec=make_spec(config))


def learn(learner, epoch=0):
    seed = epoch + EPOCHS_APART * learner._learner_index
    return learner.learn_epoch(epoch, random_batches(seed))


def weights(learner):
    return {key: value.numpy() for key, value in learner.net.state_dict().items()}


def on_all(group, function):
    results = list(group.foreach_learner(function))
    assert all(result.ok for result in results), [r.get() for r in results]
    return [result.get() for result in results]


def averaged_numbers(learner):
    gradients = [
        torch.full((2, 3, 4, 4), float(learner._learner_index)).to(
            memory_format=torch.channels_last
        ),
        torch.arange(4.0) * (learner._learner_index + 1),
    ]
    average(gradients)
    return [gradient.numpy() for gradient in gradients]


@pytest.mark.usefixtures("ray_two_cpus")
def test_two_learners_see_different_batches_and_keep_the_same_weights():
    group = make_group(2)
    try:
        first, second = on_all(group, averaged_numbers)
        for found in (first, second):
            np.testing.assert_array_equal(found[0], np.full((2, 3, 4, 4), 0.5))
            np.testing.assert_array_equal(found[1], np.arange(4.0) * 1.5)
        one, other = on_all(group, learn)
        assert one["image_loss"] != other["image_loss"]
        one, other = on_all(group, weights)
        for key, value in one.items():
            np.testing.assert_array_equal(value, other[key], err_msg=key)
    finally:
        group.shutdown()


@pytest.mark.slow  # test_continual compares whole runs with local and remote learners
@pytest.mark.usefixtures("ray_two_cpus")
def test_a_remote_learner_learns_what_the_local_one_learns():
    local, remote = make_group(0), make_group(1)
    try:
        for epoch in range(2):
            metrics = [
                on_all(g, lambda x, e=epoch: learn(x, e)) for g in (local, remote)
            ]
            assert metrics[0][0]["actor_loss"] == metrics[1][0]["actor_loss"]
            # The state goes through the object store, where arrays are read-only.
            remote.set_state(remote.get_state())
        (one,), (other,) = on_all(local, weights), on_all(remote, weights)
        for key, value in one.items():
            np.testing.assert_array_equal(value, other[key], err_msg=key)
    finally:
        remote.shutdown()
