"""How large the networks are, and in what they differ from the paper's."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from rllib_arrow.settings import SettingError


class StateUnits(NamedTuple):
    """The length of the model state [h, z], by its parts."""

    h: int
    groups: int
    classes: int


class Variant(NamedTuple):
    """What may differ from the paper's model; see the settings of the same names."""

    gru_norm: bool = False
    posterior_skip: bool = False
    learned_initial_state: bool = False


PAPER = Variant()


@dataclass(frozen=True)
class ModelSize:
    """The widths and depths that make up a model.

    `mlp_layers` counts the hidden layers of the reward, continue, actor and critic
    networks. Prior and posterior have one hidden layer, as in DreamerV3.
    """

    latent_groups: int  # how many categorical variables make up z
    latent_classes: int  # how many classes each of them has
    gru_units: int
    mlp_units: int
    mlp_layers: int
    cnn_depth: int  # channels of the first convolution; each next layer doubles them

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise SettingError(f"model_size.{name}", value, "must be an int >= 1")
        if self.latent_classes < 2:
            raise SettingError("model_size.latent_classes", 1, "must be at least 2")

    @property
    def latent_units(self) -> int:
        """The length of z as one flat one-hot vector."""
        return self.latent_groups * self.latent_classes

    @property
    def state_units(self) -> int:
        """The length of the model state [h, z]."""
        return self.gru_units + self.latent_units

    @property
    def state(self) -> StateUnits:
        """The parts of the model state [h, z], as layers over it want them."""
        return StateUnits(self.gru_units, self.latent_groups, self.latent_classes)

    @classmethod
    def from_config(cls, setting: str | dict[str, Any] | ModelSize) -> ModelSize:
        """Reads "S", or {"size": "micro", "gru_units": 256}, or all fields by name."""
        if isinstance(setting, ModelSize):
            return setting
        if isinstance(setting, dict):
            return cls._from_dict(setting)
        if not isinstance(setting, str) or setting not in SIZES:
            problem = f"must be one of {sorted(SIZES)} or a dict"
            raise SettingError("model_size", setting, problem)
        return SIZES[setting]

    @classmethod
    def _from_dict(cls, setting: dict[str, Any]) -> ModelSize:
        names = [field.name for field in fields(cls)]
        changes = {key: value for key, value in setting.items() if key != "size"}
        unknown = sorted(set(changes) - set(names))
        if unknown:
            problem = f"no such setting: use 'size' or any of {names}"
            raise SettingError(f"model_size.{unknown[0]}", setting[unknown[0]], problem)
        if "size" in setting:
            if not isinstance(setting["size"], str):
                raise SettingError("model_size.size", setting["size"], "must be a str")
            return replace(cls.from_config(setting["size"]), **changes)
        missing = [name for name in names if name not in changes]
        if missing:
            problem = f"lacks {missing}: give them, or name a base with 'size'"
            raise SettingError("model_size", setting, problem)
        return cls(**changes)


SIZES = {
    "nano": ModelSize(
        latent_groups=8,
        latent_classes=8,
        gru_units=64,
        mlp_units=64,
        mlp_layers=1,
        cnn_depth=8,
    ),
    "micro": ModelSize(
        latent_groups=16,
        latent_classes=16,
        gru_units=128,
        mlp_units=128,
        mlp_layers=2,
        cnn_depth=16,
    ),
    "S": ModelSize(
        latent_groups=32,
        latent_classes=32,
        gru_units=512,
        mlp_units=512,
        mlp_layers=2,
        cnn_depth=32,
    ),
}
