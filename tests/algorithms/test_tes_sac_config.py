"""The settings: the paper's values, and what is refused."""

from dataclasses import asdict

import pytest

from rllib_arrow import TESSACConfig


def config_on(suite: str = "minatar") -> TESSACConfig:
    return TESSACConfig().continual(curriculum={"suite": suite, "epochs_per_task": 90})


def test_the_defaults_are_the_papers_table():
    config = TESSACConfig()
    expected = {
        "actor_lr": 5e-4,
        "critic_lr": 5e-4,
        "alpha_lr": 5e-4,
        "train_batch_size_per_learner": 128,
        "gamma": 0.99,
        "tau": 0.005,
        "initial_alpha": 0.2,
        "alpha_min": 1e-6,
        "alpha_max": 0.5,
        "target_entropy_fraction": 0.8,
        "grad_clip": 5.0,
        "grad_clip_by": "global_norm",
        "tes_lambda": 0.999,
        "tes_mean_threshold": 0.01,
        "tes_std_threshold": 0.05,
        "tes_discount": 0.98,
        "tes_period": 1000,
        "tes_counting": "consecutive",
        "tes_start_epoch": 10,
        "exploration_epsilon": 0.1,
        "updates_per_epoch": 1000,
        "cnn_depth": 32,
        "mlp_units": 512,
        "mlp_layers": 2,
        "max_logit_gap": None,
        "replay_capacity_chunks": 1024,
        "replay_chunk_length": 512,
    }
    assert {key: getattr(config, key) for key in expected} == expected
    assert config.minibatches() == (1000, 128, 2)
    assert config.frames_per_epoch == 16_384
    assert config.replay_settings()["ltdm_fraction"] == 0.0


def test_the_schedule_is_made_of_the_settings():
    config = TESSACConfig().training(
        tes_lambda=0.9,
        tes_mean_threshold=0.1,
        tes_std_threshold=0.2,
        tes_discount=0.5,
        tes_period=7,
        tes_counting="cumulative",
    )
    assert asdict(config.entropy_target(1.5)) == {
        "target": 1.5,
        "decay": 0.9,
        "mean_threshold": 0.1,
        "std_threshold": 0.2,
        "discount": 0.5,
        "period": 7,
        "counting": "cumulative",
        "mean": 1.5,
        "variance": 0.0,
        "calm_steps": 0,
    }


@pytest.mark.parametrize(
    ("suite", "epochs", "expected"),
    [
        ("atari", "auto", [1.0, 0.1, 0.1, 0.0]),
        ("minatar", "auto", [1.0, 0.1, 0.1, 0.0]),
        ("coinrun", "auto", [1.0, 0.0, 0.0, 0.0]),
        ("coinrun", 2, [1.0, 0.1, 0.0, 0.0]),
        ("coinrun", "all", [1.0, 0.1, 0.1, 0.1]),
    ],
)
def test_collecting_starts_at_random_and_explores_for_sixty_epochs_but_on_coinrun(
    suite, epochs, expected
):
    config = config_on(suite).training(exploration_epochs=epochs)
    assert [config.epsilon_at(epoch) for epoch in (0, 1, 59, 60)] == expected


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"tes_lambda": 1.0}, "tes_lambda (1.0) must be a number in (0, 1)"),
        ({"tes_counting": "both"}, "tes_counting ('both') must be 'consecutive' or"),
        ({"updates_per_epoch": 0}, "updates_per_epoch (0) must be a whole number >= 1"),
        ({"actor_lr": "5e-4"}, "actor_lr ('5e-4') must be a number > 0"),
        ({"target_entropy": -1.0}, "target_entropy (-1.0) must be"),
        ({"max_logit_gap": 0.0}, "max_logit_gap (0.0) must be"),
        ({"exploration_epochs": 1.5}, "exploration_epochs (1.5) must be"),
        ({"alpha_max": 0.1}, "initial_alpha (0.2) must lie between"),
        ({"n_step": 3}, "n_step (3) must be 1"),
        ({"twin_q": False}, "twin_q (False) must be True"),
    ],
)
def test_a_setting_out_of_bounds_is_refused_with_its_value(setting, message):
    config = config_on()
    config.validate()
    config.training(**setting)
    with pytest.raises(ValueError) as error:
        config.validate()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_misspelt_setting_is_refused():
    with pytest.raises(TypeError, match="tes_lamda"):
        TESSACConfig().training(tes_lamda=0.9)
