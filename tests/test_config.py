from pathlib import Path

import pytest
import yaml

from rag_reliability.config import ExperimentConfig, load_config
from rag_reliability.records import InputError

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["paper.yaml", "smoke.yaml"])
def test_shipped_configs_load_and_name_every_value_they_set(name):
    path = ROOT / "configs" / name
    config = load_config(path)
    for field, value in yaml.safe_load(path.read_text()).items():
        found = getattr(config, field)
        assert (list(found) if isinstance(found, tuple) else found) == value


def test_the_paper_run_is_the_default():
    assert load_config(ROOT / "configs" / "paper.yaml") == ExperimentConfig()


def test_overrides_win_and_lists_may_come_as_one_scalar():
    config = load_config(ROOT / "configs" / "paper.yaml", k=10, arms="plain", window=30)
    assert (config.k, config.arms, config.window) == (10, ("plain",), 30)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"kk": 10}, "unknown parameter 'kk'; known: "),
        ({"k": "ten"}, "parameter 'k' = \"ten\""),
        ({"k": 0}, "parameter 'k' = 0"),
        ({"window": 0}, "parameter 'window' = 0"),
        ({"window": "all"}, "parameter 'window'"),
        ({"unknown_prior": 0.0}, "parameter 'unknown_prior' = 0.0"),
        ({"unknown_prior": float("nan")}, "parameter 'unknown_prior'"),
        ({"window": 4}, "window = 4 is smaller than k = 5"),
        ({"seed": -1}, "parameter 'seed' = -1"),
    ],
)
def test_bad_values_are_refused_in_one_line(given, says):
    with pytest.raises(InputError) as caught:
        load_config(None, **given)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[1, 2]", "k: [", "- k"])
def test_a_malformed_file_is_named(tmp_path, text):
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"broken\.yaml: "):
        load_config(path)


def test_a_config_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        load_config(None).k = 3
