"""QUIVER is ARROW that rehearses, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rllib_arrow import QUIVER, ARROWConfig, DV3Config, QUIVERConfig
from rllib_arrow.algorithms import on_learners
from rllib_arrow.settings import SettingError
from tests.algorithms.tiny import digest, scores, tiny_config, train


def test_quiver_is_arrow_that_rehearses_after_every_fourth_update():
    quiver = tiny_config("QUIVER").training(actor_critic_updates=4).build_algo()
    config = tiny_config("ARROW").training(actor_critic_updates=4)
    rehearsing = config.copy().training(rehearsal_interval=4).build_algo()
    arrow = config.build_algo()
    try:
        assert isinstance(quiver, QUIVER)
        for algorithm in (quiver, rehearsing, arrow):
            train(algorithm, 2)
        assert digest(quiver) == digest(rehearsing) != digest(arrow)
        assert scores(quiver).replace("QUIVER", "ARROW") == scores(rehearsing)
        assert "QUIVER,minatar," in scores(quiver)
    finally:
        for algorithm in (quiver, rehearsing, arrow):
            algorithm.stop()


def test_quiver_has_every_setting_of_arrow_and_one_other_default():
    quiver, arrow = QUIVERConfig(), ARROWConfig()
    assert set(quiver.declared_settings) == set(arrow.declared_settings)
    different = {
        name
        for name in quiver.declared_settings
        if getattr(quiver, name) != getattr(arrow, name)
    }
    assert different == {"rehearsal_interval"}
    assert quiver.training(rehearsal_interval=8, gamma=0.9).rehearsal_interval == 8


@pytest.mark.parametrize(
    ("config", "buffer"),
    [
        (QUIVERConfig(), "ltdm"),
        (QUIVERConfig().training(rehearsal_from="both"), "both"),
        (QUIVERConfig().training(ltdm_fraction=0.0), "fifo"),
        (DV3Config().training(rehearsal_interval=4), "fifo"),
    ],
)
def test_rehearsed_minibatches_are_asked_of_the_long_term_buffer(
    config, buffer, monkeypatch
):
    asked = []

    class Stream:
        waited_s = 0.0

        def __init__(self, replay, count, batch_size, length, *, buffer=None, **rest):
            asked.append((count, buffer))

    monkeypatch.setattr(on_learners, "BatchStream", Stream)
    monkeypatch.setattr(on_learners, "index_of", lambda learner: 0)
    learner = SimpleNamespace(config=config, learn_epoch=lambda *a, **streams: {})
    on_learners.learn_epoch(learner, replay=None, epoch=3, on_progress=None)
    assert asked == [(1800, None), (200, buffer)]


def test_quiver_without_rehearsal_is_refused():
    config = tiny_config("QUIVER").training(rehearsal_interval=0)
    with pytest.raises(SettingError, match="rehearsal_interval"):
        config.validate()


@pytest.mark.parametrize(("share", "name"), [(0.5, "QUIVER"), (0.25, "QUIVER25")])
def test_quiver_says_how_its_memory_is_divided(share, name):
    assert QUIVERConfig().training(ltdm_fraction=share).method == name
