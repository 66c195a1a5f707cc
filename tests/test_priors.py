from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_reliability.records import InputError
from rag_reliability.reliability.priors import (
    effective_types,
    load_priors,
    prior_vector,
    temper,
)

PRIORS = Path(__file__).parents[1] / "configs" / "priors.yaml"
CURRENT = {
    "peer_reviewed": 0.95,
    "government": 0.90,
    "established_news": 0.75,
    "blog": 0.50,
    "user_generated": 0.40,
    "ai_generated": 0.30,
}


def written(tmp_path, text):
    path = tmp_path / "priors.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_our_file_has_the_named_spreads():
    tables = load_priors(PRIORS)
    assert list(tables.spreads) == ["none", "compressed", "current", "aggressive"]
    assert dict(tables.table("current")) == CURRENT
    assert set(tables.table("none").values()) == {1.0}
    assert tables.known_types == tuple(CURRENT) and dict(tables.sources) == {}


def test_our_spreads_keep_the_order_of_types_and_grow():
    tables = load_priors(PRIORS)
    ratios = []
    for spread in ("compressed", "current", "aggressive"):
        values = list(tables.table(spread).values())
        assert values == sorted(values, reverse=True) and len(set(values)) == 6
        ratios.append(values[0] / values[-1])
    assert ratios == sorted(ratios)


def test_unknown_spread_names_the_known_ones():
    with pytest.raises(InputError, match="'wild'; known: none, compressed, current, aggressive"):
        load_priors(PRIORS).table("wild")


BAD = {
    "spreads: {a: {blog: 0}}": ":1: spread 'a', 'blog': λ = 0; expected",
    "spreads:\n  a:\n    blog: 1.5\n": ":3: .*λ = 1.5",
    "spreads:\n  a:\n    blog: -0.1\n": ":3: .*λ = -0.1",
    "spreads:\n  a:\n    blog: .nan\n": ":3: .*λ = .nan",
    "spreads:\n  a:\n    blog: .inf\n": ":3: .*λ = .inf",
    "spreads:\n  a:\n    blog: high\n": ":3: .*λ = high",
    "spreads:\n  a:\n    blog: '0.5'\n": ":3: .*λ = 0.5; expected a number",
    "spreads:\n  a:\n    blog: true\n": ":3: .*λ = true",
    "spreads:\n  a:\n    blog: [0.5]\n": ":3: .*a list or mapping",
    "spreads:\n  a:\n    blog: !!float x\n": ":3: .*λ = x",
    "spreads:\n  a:\n    blog:\n": ":3: .*expected a number",
    "spreads:\n  a:\n    blog: 0.5\n    blog: 0.6\n": ":4: 'blog' stands twice in spread 'a'",
    "spreads:\n  a: {blog: 0.5}\n  a: {blog: 0.5}\n": ":3: 'a' stands twice",
    "spreads:\n  a: {blog: 0.5}\n  b: {news: 0.5}\n": ":3: spread 'b' names news; expected blog",
    "spreads: {a: {}}": "names nothing",
    "spreads: {}": "at least one spread",
    "spreads: [a]": "key: value",
    "other: {}": "unknown key 'other'; expected spreads, sources",
    "sources: {}": "expected a key 'spreads'",
    "": "key: value",
    "{": "cannot be read as YAML",
    "? [a]\n: b": "expected a word as key",
    "spreads: {a: {blog: 0.5}}\nsources: {x.example: news}": ":2: source 'x.example' .*one of blog",
    "spreads: {a: {blog: 0.5}}\nsources: {x.example: 0.5}": ":2: source 'x.example' counts as 0.5",
    "spreads: {a: {blog: 0.5}}\nsources: [x]": ":2: expected 'sources' to hold",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_are_refused_in_one_line(tmp_path, text):
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=BAD[text]) as error:
        load_priors(path)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_priors(tmp_path / "nothing.yaml")
    (tmp_path / "latin").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InputError, match="cannot be read"):
        load_priors(tmp_path / "latin")


def test_one_prior_for_each_document():
    vector = prior_vector(CURRENT, ["blog", "peer_reviewed", "blog", "ai_generated"])
    assert vector.dtype == np.float64
    np.testing.assert_array_equal(vector, [0.5, 0.95, 0.5, 0.3])
    assert prior_vector(CURRENT, []).shape == (0,)


def test_unknown_type_is_named_unless_it_has_a_prior():
    types = ["blog", "forum", "forum"]
    with pytest.raises(InputError, match=r"'forum' \(document at position 1\).*known: peer_rev"):
        prior_vector(CURRENT, types)
    np.testing.assert_array_equal(prior_vector(CURRENT, types, unknown_prior=0.2), [0.5, 0.2, 0.2])
    for bad in (0.0, 1.2, float("nan")):
        with pytest.raises(InputError, match="expected 0 < λ <= 1"):
            prior_vector(CURRENT, types, unknown_prior=bad)


def test_a_source_can_count_as_another_type(tmp_path):
    text = "spreads: {a: {news: 0.8, blog: 0.5}}\nsources: {Rumour.example: blog}\n"
    tables = load_priors(written(tmp_path, text))
    types, sources = ["news", "news"], ["rumour.example", "other.example"]
    vector = prior_vector(tables.table("a"), types, sources, overrides=tables.sources)
    np.testing.assert_array_equal(vector, [0.5, 0.8])
    assert effective_types(types, sources, tables.sources).tolist() == ["blog", "news"]
    np.testing.assert_array_equal(prior_vector(tables.table("a"), types, sources), [0.8, 0.8])


def test_temper_runs_from_none_to_current_and_beyond():
    assert set(temper(CURRENT, 0).values()) == {1.0}
    assert temper(CURRENT, 1) == CURRENT
    assert temper({"blog": 0.5}, 3) == {"blog": 1 / 8}
    for bad in (-1, float("nan"), float("inf"), 1e6):
        with pytest.raises(InputError, match="gamma"):
            temper(CURRENT, bad)


@given(st.floats(0, 20), st.floats(0, 20))
def test_temper_keeps_the_order_of_types_and_widens(a, b):
    low, high = sorted((a, b))
    values = list(temper(CURRENT, high).values())
    assert values == sorted(values, reverse=True)
    assert all(temper(CURRENT, high)[t] <= temper(CURRENT, low)[t] for t in CURRENT)
