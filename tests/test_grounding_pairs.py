"""The command on files of pairs: order, bad lines, resumption; flags and spans by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_reliability import modelstore
from rag_reliability.cli import main
from rag_reliability.evaluation.alignment import TextVectors, clean
from rag_reliability.evaluation.constants import load_constants
from rag_reliability.evaluation.flags import flags
from rag_reliability.evaluation.grounding import BlendScorer
from rag_reliability.evaluation.pairs import pair_of, score_pairs
from rag_reliability.evaluation.spans import LONG, lexical_span, parts, pieces, vector_span
from rag_reliability.evaluation.support import Thresholds, stands_in
from rag_reliability.experiment import grounding
from rag_reliability.experiment.grounding import chunks, read_pairs, score_grounding
from rag_reliability.retrieval.encode import load_encoder

from .conftest import ROOT

PASSAGE = "Honey for a cough. Honey soothes a cough at night in children over one. It is cheap."
ROWS = [
    {"id": "a", "claim": "Honey soothes a night cough [1].", "passages": ["Granite.", PASSAGE]},
    {"id": 7, "claim": "", "passages": [PASSAGE]},
    {"id": "ü\u2028", "claim": "The harbour burned.", "passages": {"text": "Fire", "title": "A"}},
    {"id": "none", "claim": "Honey soothes.", "passages": []},
    {"id": "blank", "claim": "Honey soothes.", "passages": [" ", "[1]"]},
    {"id": "declines", "claim": "I cannot answer this question.", "passages": [PASSAGE]},
    {"id": "阿", "claim": "阿司匹林 🎉", "passages": ["阿司匹林", {"text": ""}], "more": [1]},
]


@pytest.fixture(scope="module")
def vectors() -> TextVectors:
    return TextVectors(load_encoder(modelstore.resolve("all-minilm-l6-v2").path))


@pytest.fixture(scope="module")
def scorer(vectors: TextVectors) -> BlendScorer:
    return BlendScorer(vectors, load_constants(ROOT / "configs" / "grounding.yaml").blend)


def write(path: Path, rows: list) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


# ---- flags and spans -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "passage", "expected"),
    [
        ("It helped 40% of them.", "It helped 40 percent.", ()),
        ("It helped 45% of them.", "It helped 40 percent.", ("number: 45",)),
        ("Two trials, 1,000 people.", "2 trials of 1000 people", ()),
        ("A dose of 2.50 mg in 3 days.", "2.5mg", ("number: 3",)),
        ("COVID-19 spreads.", "covid spreads", ("entity: COVID-19",)),
        ("People in Boston, USA, agree.", "PEOPLE IN BOSTON AGREE", ("entity: USA",)),
        ("Honey helps. Experts agree.", "it helps", ()),  # sentence starts are no names
        ("I'm told Pfizer's trial worked.", "the pfizer trial worked", ()),
        ("It does not help.", "It helps.", ("negation",)),
        ("It helps.", "It doesn't help.", ("negation",)),
        ("It never helps.", "It does not help.", ()),
        ("HONEY HELPS ALL CHILDREN NOW", "nothing of the kind, no", ("negation",)),
        ("", "", ()),
    ],
)
def test_flags_by_hand(claim: str, passage: str, expected: tuple[str, ...]) -> None:
    assert flags(claim, passage) == expected


def test_negation_is_looked_for_in_the_span() -> None:
    passage = "It does not keep. Honey helps."
    assert flags("Honey helps.", passage) == ("negation",)
    assert flags("Honey helps.", passage, "Honey helps.") == ()


def test_pieces_and_parts() -> None:
    assert pieces("One two. [1]\n\n Three!  …") == ["One two.", "Three! …"]
    assert [len(p.split()) for p in pieces("w " * 130)] == [60, 60, 10]
    assert pieces("") == [] and lexical_span("a", "") == ""


@given(st.text(alphabet="ab \n[1]", max_size=60), st.integers(3, 20))
def test_parts_hold_the_whole_passage(text: str, limit: int) -> None:
    found = parts(text, limit)
    assert "".join(found).replace(" ", "") == clean(text).replace(" ", "")
    assert all(len(p) <= limit for p in found)


def test_spans_are_the_sentence_meant(vectors: TextVectors) -> None:
    find = vector_span(vectors)
    assert find("Children cough less at night.", PASSAGE).startswith("Honey soothes a cough at")
    assert find("The price is low.", PASSAGE) == "It is cheap."
    assert find("x", "") == "" and find("", PASSAGE) in pieces(PASSAGE)
    assert find("end", "word " * LONG + "the end.").endswith("the end.")  # by words alone


def test_one_pass_of_the_encoder_gives_both_kinds(vectors: TextVectors) -> None:
    texts = ["Honey soothes.", "word " * 400, "Honey soothes."]
    wholes, tokens = vectors.encoder.encode_both(texts)
    np.testing.assert_allclose(wholes, vectors.encoder.encode(texts), atol=1e-5)
    for mine, theirs in zip(tokens, vectors.encoder.encode_tokens(texts), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)


# ---- pairs ---------------------------------------------------------------------------------


def test_score_pairs_by_hand() -> None:
    class Known:
        def pair_scores(self, claims, passages):
            value = {"p": 0.9, "q": 0.2}
            return {
                "support": np.array([value[p] for p in passages]),
                "contradiction": np.array([1 - value[p] for p in passages]),
            }

    rows = [
        {"id": 1, "claim": "q p 5", "passages": ["q", "p"]},
        {"id": 2, "claim": "c", "passages": None},
    ]
    one, two = score_pairs([pair_of(r, "x:1") for r in rows], Known(), Thresholds())
    assert one.row() == {
        "id": 1, "support": 0.9, "band": "supported", "best_passage": 1, "span": "p",
        "recall": 0.3333, "flags": ["number: 5"], "contradiction": 0.8,
    }  # fmt: skip
    assert (two.support, two.band, two.best_passage) == (0, "abstained", None)
    assert two.more == {"contradiction": 0}


def test_a_flag_never_lowers_a_score(scorer: BlendScorer) -> None:
    claim = "Honey soothes a cough at night in 90 children of Boston."
    row = {"id": 1, "claim": claim, "passages": [PASSAGE]}
    (found,) = score_pairs([pair_of(row, "x:1")], scorer, scorer.constants)
    assert found.flags == ("number: 90", "entity: Boston")
    assert found.support == scorer.support([claim], [PASSAGE])[0, 0]


def test_labels_and_groups() -> None:
    base = {"id": 3, "claim": "c", "passages": "p"}
    assert pair_of(base, "x").group == "3" and pair_of(base, "x").label is None
    assert pair_of(base | {"label": 1, "group": 5}, "x").group == "5"
    assert [pair_of(base | {"label": v}, "x").label for v in (0, 1, False, 1.0)] == [
        False, True, False, True,
    ]  # fmt: skip


# ---- the command ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pairs")
    pairs = write(folder / "pairs.jsonl", ROWS)
    assert main(["score-grounding", "--pairs", str(pairs), "--out", str(folder / "o" / "x")]) == 0
    return pairs, folder / "o" / "x"


def test_every_line_is_scored_in_order(scored: tuple[Path, Path]) -> None:
    rows = read(scored[1])
    assert [r["id"] for r in rows] == [r["id"] for r in ROWS]
    assert list(rows[0]) == [
        "id", "support", "band", "best_passage", "span", "recall", "flags",
    ]  # fmt: skip
    first = rows[0]
    assert (first["band"], first["best_passage"], first["recall"]) == ("supported", 1, 1)
    assert first["span"].startswith("Honey soothes") and first["flags"] == []
    bands = [r["band"] for r in rows]
    assert [b == "abstained" for b in bands] == [False, True, False, True, True, True, False]
    assert all(r["support"] == 0 for r in rows if r["band"] == "abstained")
    assert [p.name for p in scored[1].parent.iterdir()] == ["x"]  # nothing left beside it


def test_it_goes_on_where_it_stopped(scored, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(grounding, "CHUNK_LINES", 2)
    calls: list[int] = []

    def stops(pairs, *rest):
        calls.append(len(pairs))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return score_pairs(pairs, *rest)

    out = tmp_path / "out.jsonl"
    monkeypatch.setattr(grounding, "score_pairs", stops)
    with pytest.raises(KeyboardInterrupt):
        score_grounding(scored[0], out, progress=False)
    assert not out.exists()
    (part,) = tmp_path.glob("*.part")
    with part.open("a") as file:
        file.write('{"id": "half a li')
    score_grounding(scored[0], out, progress=False)
    assert calls == [2, 2, 2, 2, 1]  # the first four lines are not scored again
    assert [r["id"] for r in read(out)] == [r["id"] for r in ROWS]
    for mine, theirs in zip(read(out), read(scored[1]), strict=True):
        assert mine["support"] == pytest.approx(theirs["support"], abs=1e-4)
    assert [p.name for p in tmp_path.iterdir()] == ["out.jsonl"]


def test_chunks_bound_the_memory() -> None:
    sizes = [len(c) for c in chunks(iter(_pairs(600, 10)))]
    assert sizes == [256, 256, 88]
    assert [len(c) for c in chunks(iter(_pairs(5, 300_000)))] == [2, 2, 1]


def _pairs(n: int, size: int) -> list:
    return [pair_of({"id": i, "claim": "c", "passages": ["p" * size]}, "x") for i in range(n)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", ":2: not JSON"),
        ("[1]", ":2: expected one JSON object"),
        ('{"claim": "c", "passages": []}', ":2: field 'id' is missing"),
        ('{"id": 1, "passages": []}', ":2: field 'claim' is missing"),
        ('{"id": 1, "claim": "c"}', ":2: field 'passages' is missing"),
        ('{"id": null, "claim": "c", "passages": []}', ":2: field 'id' is null"),
        ('{"id": true, "claim": "c", "passages": []}', ":2: field 'id' is bool"),
        ('{"id": "", "claim": "c", "passages": []}', ":2: field 'id' is empty"),
        ('{"id": 1, "claim": 5, "passages": []}', ":2: field 'claim' is int; expected text"),
        ('{"id": 1, "claim": "c", "passages": [3]}', "field 'passages[0]' is int"),
        ('{"id": 1, "claim": "c", "passages": [{"body": ""}]}', "without a field 'text'"),
        ('{"id": 1, "claim": "\\ud800", "passages": []}', "half of a surrogate pair"),
        ('{"id": 1, "claim": "c", "passages": [], "label": "yes"}', "field 'label' is 'yes'"),
        ('{"id": "a", "claim": "c", "passages": []}', "id 'a' stands on"),
        ('{"id": 1, "claim": "' + "word " * 5000 + '", "passages": []}', "25,000 characters"),
    ],
)
def test_bad_lines_are_refused_with_their_place(line, said, tmp_path, capsys) -> None:
    pairs = write(tmp_path / "pairs.jsonl", ROWS[:1])
    pairs.write_text(pairs.read_text() + line + "\n")
    out = tmp_path / "out.jsonl"
    assert main(["score-grounding", "--pairs", str(pairs), "--out", str(out)]) == 2
    err = capsys.readouterr().err.strip()
    assert said in err and "pairs.jsonl:2" in err and "\n" not in err and len(err) < 400
    assert not out.exists()


def test_files_that_cannot_be_are_refused(tmp_path, capsys) -> None:
    empty = write(tmp_path / "empty.jsonl", [])
    for argv, said in (
        (["--pairs", str(empty), "--out", str(tmp_path / "o")], "holds no pairs"),
        (["--pairs", str(tmp_path / "no"), "--out", str(tmp_path / "o")], "cannot be read"),
        (["--pairs", str(empty), "--out", str(empty)], "is the file of pairs itself"),
        (["--pairs", str(empty), "--out", str(tmp_path)], "is a folder"),
    ):
        assert main(["score-grounding", *argv]) == 2
        assert said in capsys.readouterr().err


def test_a_missing_judge_is_refused(scored, tmp_path, capsys) -> None:
    argv = ["score-grounding", "--pairs", str(scored[0]), "--out", str(tmp_path / "o")]
    assert main([*argv, "--judge", "no/such-model"]) == 2
    assert "no/such-model" in capsys.readouterr().err
    assert main([*argv, "--labels", "entailment=0"]) == 2
    assert main([*argv, "--labels", "entailment"]) == 2


def test_a_long_passage_is_scored_by_its_best_part(scorer: BlendScorer, tmp_path: Path) -> None:
    filler = "The harbour was rebuilt with granite from a quarry nearby. "
    long = filler * 345 + PASSAGE
    assert len(long) > LONG
    row = {"id": 1, "claim": "Honey soothes a cough at night.", "passages": [long]}
    (pair,) = list(read_pairs(write(tmp_path / "p.jsonl", [row])))
    (found,) = score_pairs([pair], scorer, scorer.constants)
    assert found.span.startswith("Honey soothes")
    assert found.support > scorer.support([pair.claim], [filler * 20])[0, 0] + 0.2


# ---- what must change nothing ----------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(order=st.permutations(range(3)), seed=st.integers(0, 9))
def test_order_layout_marks_and_case_change_nothing(scorer, order, seed) -> None:
    texts = [PASSAGE, "The harbour burned in 1904.", "Falls are common in older adults."]
    claim = "Honey soothes a night cough."
    rng = np.random.default_rng(seed)

    def disturbed(text: str) -> str:
        words = [w.upper() if rng.random() < 0.5 else w for w in text.split()]
        return "  ".join(words[:3]) + " [2]\n" + "\t".join(words[3:]) + " [1, 3]"

    rows = [
        {"id": 1, "claim": claim, "passages": texts},
        {
            "id": 2,
            "claim": f" {claim[:-1]}\n[1]. ",
            "passages": [disturbed(texts[i]) for i in order],
        },
    ]
    one, two = score_pairs([pair_of(r, "x") for r in rows], scorer, scorer.constants)
    assert one.support == pytest.approx(two.support, abs=1e-4)
    assert two.best_passage == order.index(one.best_passage)
    assert (one.band, one.recall, one.flags) == (two.band, two.recall, two.flags)


@pytest.mark.parametrize(
    ("claim", "passage", "stands"),
    [
        ("Honey soothes a cough", "It is cheap. “HONEY soothes a cough!” Yes.", True),
        ("Honey soothes a cough.", "Honey soothes a cough", True),
        ("Honey soothes a cough.", "It is a myth that honey soothes a cough.", False),
        ("Honey soothes a cough.", "Honey soothes a cough only in dreams.", False),
        ("Honey soothes a cough.", "No honey soothes a cough? Honey soothes a cough.", True),
        ("Honey soothes coughs.", "Honey soothes coughs.", False),  # three words prove little
        ("", "", False),
    ],
)
def test_word_for_word(claim: str, passage: str, stands: bool) -> None:
    assert stands_in(claim, passage) is stands


def test_a_verbatim_sentence_scores_at_the_top(scorer: BlendScorer) -> None:
    filler = "Some families keep it in the kitchen and others in the cellar. " * 8
    passage = f"{filler}{PASSAGE} {filler}"
    claims = ["Honey soothes a cough at night in children over one [1].", "Honey is for coughs."]
    (copied, other), _ = scorer.support(claims, [passage, "???"]).T
    assert copied == 1 and other < 1


IRRELEVANT = (
    "Knitting patterns for beginners need two needles and patience.",
    "The parliament voted on the railway budget in spring.",
    "x", "???", "", "Buy now! " * 50,
)  # fmt: skip


@pytest.mark.parametrize("extra", IRRELEVANT)
def test_an_irrelevant_passage_never_raises_support(scorer: BlendScorer, extra: str) -> None:
    claims = ["Honey soothes a night cough.", "Daily vitamin D prevents falls."]
    given = [PASSAGE]
    before = scorer.support(claims, given).max(axis=1)
    after = scorer.support(claims, [*given, extra]).max(axis=1)
    assert (after >= before - 1e-4).all() and (after - before <= 0.05).all()


def test_threads_and_batches_change_nothing(scorer: BlendScorer) -> None:
    import torch

    claims = [f"Honey soothes a cough in {n} children." for n in range(12)]
    expected = scorer.support(claims, [PASSAGE])
    threads = torch.get_num_threads()
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            fresh = BlendScorer(TextVectors(scorer.vectors.encoder), scorer.constants)
            alone = [fresh.support([c], [PASSAGE])[0] for c in claims[:4]]
            np.testing.assert_allclose(alone, expected[:4], atol=1e-4)
            fresh = BlendScorer(TextVectors(scorer.vectors.encoder), scorer.constants)
            np.testing.assert_allclose(fresh.support(claims, [PASSAGE]), expected, atol=1e-4)
    finally:
        torch.set_num_threads(threads)
