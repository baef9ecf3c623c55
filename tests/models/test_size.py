import pytest

from rllib_arrow.models.size import SIZES, ModelSize


def test_size_s_is_the_papers():
    size = ModelSize.from_config("S")
    assert (size.latent_groups, size.latent_classes) == (32, 32)
    assert (size.gru_units, size.mlp_units, size.mlp_layers) == (512, 512, 2)
    assert size.cnn_depth == 32
    assert size.state_units == 512 + 1024


def test_a_dict_changes_a_named_size():
    size = ModelSize.from_config({"size": "micro", "gru_units": 256})
    assert size.gru_units == 256
    assert size.mlp_units == SIZES["micro"].mlp_units


def test_a_dict_may_give_every_field():
    fields = {
        "latent_groups": 4,
        "latent_classes": 5,
        "gru_units": 6,
        "mlp_units": 7,
        "mlp_layers": 1,
        "cnn_depth": 2,
    }
    assert ModelSize.from_config(fields) == ModelSize(**fields)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("XXL", "'XXL'.*micro"),
        (3, "3.*micro"),
        ({"size": "XXL"}, "XXL"),
        ({"size": 1}, "must be a str"),
        ({"size": "S", "gru_unit": 3}, "gru_unit.*gru_units"),
        ({"gru_units": 3}, "lacks.*cnn_depth"),
        ({"size": "S", "gru_units": 0}, "gru_units .0. must be"),
        ({"size": "S", "gru_units": 2.5}, "gru_units .2.5. must be"),
        ({"size": "S", "mlp_layers": True}, "mlp_layers .True. must be"),
        ({"size": "S", "latent_classes": 1}, "latent_classes"),
    ],
)
def test_wrong_sizes_are_refused_in_one_line(setting, words):
    with pytest.raises(ValueError, match=words) as error:
        ModelSize.from_config(setting)
    assert "\n" not in str(error.value)
