"""A setting is declared once; everything else about it follows from that."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any, Literal

import pytest
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.utils.from_config import NotProvided

from rllib_arrow import ARROWConfig, DV3Config, TESSACConfig
from rllib_arrow.errors import UserError
from rllib_arrow.experiments.yaml_settings import kinds_of
from rllib_arrow.settings import Setting, SettingError, naming, setting
from rllib_arrow.settings_page import FILE, page
from tests.algorithms.tiny import tiny_config

CONFIGS = [ARROWConfig, DV3Config, TESSACConfig]
CURRICULUM = {"suite": "minatar", "epochs_per_task": 2}


class MyConfig(ARROWConfig):
    """What a user writes to add settings."""

    sharpness: float = setting(0.5, "How sharp it is.", "(0, 1]")
    rounds: int | Literal["auto"] | None = setting("auto", "How often.", ">= 2")
    parts: dict[str, Any] = setting({"a": 1}, "What it is made of.")


class TrainsInItsOwnWay(MyConfig):
    def training(self, *, doubled: float = NotProvided, **rest: Any):
        super().training(**rest)
        if doubled is not NotProvided:
            self.sharpness = doubled / 2
        return self


class InheritsTheWay(TrainsInItsOwnWay):
    blunt: bool = setting(False, "Whether it is blunt.")


def mine() -> MyConfig:
    return MyConfig().continual(curriculum=CURRICULUM)


def test_one_declaration_gives_default_setter_check_yaml_type_and_help():
    config = mine()
    assert (config.sharpness, config.rounds, config.parts) == (0.5, "auto", {"a": 1})
    config.training(sharpness=1, rounds=3, gamma=0.9, ltdm_fraction=0.25).validate()
    assert (config.sharpness, config.rounds, config.gamma) == (1, 3, 0.9)
    assert config.ltdm_fraction == 0.25
    assert kinds_of(config)["rounds"].allowed == "'auto' or None or a whole number >= 2"
    told = MyConfig.training.__doc__
    assert "sharpness (float, default 0.5): How sharp it is." in told
    assert "ltdm_fraction (float, default 0.5): Share" in told
    assert "sharpness" not in ARROWConfig.training.__doc__
    with pytest.raises(SettingError, match=r"sharpness \(0\) must be a number in \(0"):
        config.training(sharpness=0).validate()


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (2, True),
        ("auto", True),
        (None, True),
        (1, False),
        (2.0, False),
        (True, False),
        ("Auto", False),
        ("2", False),
        ([2], False),
    ],
)
def test_a_value_fits_the_type_or_one_of_the_single_values(value, fits):
    config = mine().training(rounds=value)
    if fits:
        config.validate()
        return
    with pytest.raises(SettingError) as error:
        config.validate()
    assert error.value.key == "rounds" and error.value.value == value


@pytest.mark.parametrize(
    ("bounds", "inside", "outside"),
    [
        ("> 0", [1e-9, 5], [0, -1]),
        (">= 1", [1, 9], [0.99]),
        ("< 1", [0.5], [1]),
        ("[0, 1]", [0, 0.5, 1], [-0.1, 1.1]),
        ("(0, 1)", [0.5], [0, 1]),
        ("[0, 1)", [0, 0.5], [1]),
        ("", [-1e9, 1e9], [float("nan"), float("inf"), True, "1", "1e-4", None]),
    ],
)
def test_bounds_are_meant_as_they_are_written(bounds, inside, outside):
    number = Setting(0.5, bounds=bounds, types=(float,))
    assert [number.problem(value) for value in inside] == [""] * len(inside)
    assert all(number.problem(value).startswith("must be a nu") for value in outside)


def test_a_literal_true_is_not_the_number_one():
    config = TESSACConfig().continual(curriculum=CURRICULUM)
    config.validate()
    config.twin_q = 1
    with pytest.raises(SettingError, match=r"twin_q \(1\) must be True"):
        config.validate()


def test_an_unknown_name_is_answered_with_the_nearest_one_or_its_method():
    with pytest.raises(TypeError, match=r"'sharpnes': did you mean 'sharpness'\?"):
        mine().training(sharpnes=1)
    with pytest.raises(TypeError, match=r"'replay_prefetch': continual\(\) sets it"):
        mine().training(replay_prefetch=1)
    with pytest.raises(TypeError, match=r"'num_env_runners': env_runners\(\) sets it"):
        mine().training(num_env_runners=1)
    with pytest.raises(TypeError, match="did you mean 'curriculum'"):
        mine().continual(curiculum={})


def test_a_training_method_of_a_users_class_is_called_also_below_it():
    config = InheritsTheWay().training(doubled=1.0, blunt=True, horizon_H=3)
    assert (config.sharpness, config.blunt, config.horizon_H) == (0.5, True, 3)
    assert InheritsTheWay().training(doubled=0.2, rounds=NotProvided).sharpness == 0.1
    with pytest.raises(TypeError, match="'doublet': did you mean 'doubled'"):
        InheritsTheWay().training(doublet=1.0)


@pytest.mark.parametrize("cls", [*CONFIGS, MyConfig])
def test_configurations_copy_pickle_and_restore_like_rllibs(cls):
    config = cls().continual(curriculum=CURRICULUM, replay_prefetch=7)
    config.training(gamma=0.5)
    copies = [
        config.copy(),
        copy.deepcopy(config),
        pickle.loads(pickle.dumps(config)),
        cls.from_state(config.get_state()),
        cls().update_from_dict(config.to_dict()),
    ]
    for other in copies:
        assert (other.replay_prefetch, other.gamma) == (7, 0.5)
        other.validate()
    config.freeze()
    with pytest.raises(AttributeError, match="frozen"):
        config.continual(replay_prefetch=8)
    # A checkpoint of an earlier version lacks the settings that are new.
    state = config.get_state()
    del state["replay_prefetch"]
    assert cls.from_state(state).replay_prefetch == 4


def test_defaults_are_not_shared_between_configurations():
    first, second = MyConfig(), MyConfig()
    first.parts["b"] = 2
    first.label_settings.append("gamma")
    assert second.parts == {"a": 1} and second.label_settings == []


@pytest.mark.parametrize("cls", CONFIGS)
def test_every_default_fits_its_own_declaration_and_has_a_sentence(cls):
    config = cls()
    assert len(cls.declared_settings) > 35
    for name, declared in cls.declared_settings.items():
        assert declared.problem(getattr(config, name)) == "", name
        assert declared.sentence.endswith("."), name
        assert f"    {name} (" in cls.training.__doc__


def test_no_setting_of_ours_is_left_undeclared():
    """What RLlib's class does not have, a configuration of ours declares."""
    for cls, rllib in ((ARROWConfig, AlgorithmConfig), (TESSACConfig, SACConfig)):
        assert set(vars(cls())) - set(vars(rllib())) <= set(cls.declared_settings)


def test_an_error_of_a_part_is_given_the_key_once():
    with pytest.raises(SettingError, match=r"a\.b") as error, naming("a", 1):
        with naming("a.b", 2):
            raise UserError("too much")
    assert (error.value.key, error.value.value) == ("a.b", 2)
    again = pickle.loads(pickle.dumps(error.value))
    assert (str(again), again.key) == ("a.b (2): too much.", "a.b")


def test_the_page_of_settings_is_up_to_date():
    written = (Path(__file__).parents[1] / FILE).read_text()
    assert written == page(), "run: python -m rllib_arrow.settings_page"


@pytest.mark.parametrize("method", ["ARROW", "TES-SAC"])
def test_an_epoch_too_short_for_a_chunk_is_refused(method):
    config = tiny_config(method).env_runners(rollout_fragment_length=23)
    with pytest.raises(
        SettingError,
        match=r"rollout_fragment_length \(23\) must be at least replay_chunk_length "
        r"\(24\)",
    ):
        config.validate()
    config.env_runners(rollout_fragment_length=24).validate()


@pytest.mark.parametrize(
    ("method", "change", "told"),
    [
        ("ARROW", {"min_time_s_per_iteration": 60}, "an iteration is one epoch"),
        ("DV3", {"min_sample_timesteps_per_iteration": 9}, "an iteration is one epoch"),
        ("ARROW", {"num_epochs": 3}, "updates"),
        ("TES-SAC", {"replay_buffer_config": {"capacity": 9}}, "capacity_chunks"),
        ("TES-SAC", {"clip_rewards": True}, "reward_scale"),
    ],
)
def test_rllibs_settings_that_nothing_reads_are_refused(method, change, told):
    config = tiny_config(method)
    config.reporting(min_time_s_per_iteration=0).validate()  # which asks for nothing
    config.update_from_dict(change)
    [name] = change
    with pytest.raises(SettingError, match=rf"{name} .*must be left alone.*{told}"):
        config.validate()
