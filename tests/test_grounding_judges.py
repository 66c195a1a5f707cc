"""NLI and causal models as judges: tiny random ones, made here, through the same protocol."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from rag_reliability.evaluation.judge import LogOddsScorer
from rag_reliability.evaluation.nli import NliScorer, label_map, load_nli
from rag_reliability.experiment.grounding import score_grounding
from rag_reliability.generation.claims import claim_log_odds, claim_messages
from rag_reliability.generation.models import load_generator
from rag_reliability.records import InputError

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
SPECIAL = "[PAD] [UNK] [CLS] [SEP] [MASK]"
PLAIN = "Yes No : . ? honey granite helps a cough not harbour"
WORDS = [*SPECIAL.split(), *PLAIN.split()]
CLAIMS = ["honey helps a cough", "granite", "honey helps"]
PASSAGES = ["honey helps a cough .", "not a harbour", "cough " * 300 + "honey helps"]


def _nli(folder: Path, labels: list[str], *, head: bool = True) -> Path:
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, BertModel
    from transformers import PreTrainedTokenizerFast as Fast

    torch.manual_seed(0)
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "sep_token": "[SEP]", "cls_token": "[CLS]"}
    Fast(tokenizer_object=tokenizer, model_max_length=64, **named).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=66,
        initializer_range=1.0,
        id2label=dict(enumerate(labels)),
        label2id={name: i for i, name in enumerate(labels)},
    )
    kind = BertForSequenceClassification if head else BertModel
    kind(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def nli_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _nli(tmp_path_factory.mktemp("nli"), ["CONTRADICTION", "Entailment", "neutral"])


@pytest.fixture(scope="module")
def nli(nli_folder: Path) -> NliScorer:
    return load_nli(nli_folder)


@pytest.mark.parametrize(
    ("names", "given", "expected"),
    [
        (["ENTAILMENT", "Neutral", "contradiction"], None, (0, 1, 2)),
        (["entailment", "not-entailment"], None, (0, 1)),
        (
            ["LABEL_0", "LABEL_1", "LABEL_2"],
            {"contradiction": 0, "neutral": 1, "entailment": 2},
            (0, 1, 2),
        ),
    ],
)
def test_labels_are_mapped_by_name(names, given, expected) -> None:
    assert sorted(label_map(names, given).values()) == list(expected)
    assert label_map(names, given)["entailment"] == (2 if given else 0)


@pytest.mark.parametrize(
    ("names", "given", "said"),
    [
        (["LABEL_0", "LABEL_1", "LABEL_2"], None, "'LABEL_0', 'LABEL_1', 'LABEL_2': expected"),
        (["entailment", "neutral"], None, "expected entailment, neutral, contradiction or"),
        (["positive", "negative"], None, "expected"),
        (["entailment", "neutral", "contradiction", "other"], None, "each once"),
        (["entailment", "Entailment", "neutral"], None, "each once"),
        (["a", "b", "c"], {"entailment": 0, "neutral": 1, "contradiction": 1}, "each of the"),
        (["a", "b", "c"], {"entailment": 0, "neutral": 1, "contradiction": 3}, "each of the"),
        (["a", "b", "c"], {"supports": 0, "neutral": 1, "contradiction": 2}, "given: supports=0"),
        (
            ["entailment", "neutral", "contradiction"],
            {"entailment": 2, "neutral": 1, "contradiction": 0},
            "the model itself has entailment in column 0",
        ),
    ],
)
def test_wrong_maps_are_refused(names, given, said) -> None:
    with pytest.raises(InputError, match=said) as caught:
        label_map(names, given)
    assert "\n" not in str(caught.value)


def test_probabilities_are_the_models_own(nli: NliScorer, nli_folder: Path) -> None:
    from transformers import pipeline

    judge = pipeline("text-classification", str(nli_folder), top_k=None)
    (by_hand,) = judge([{"text": PASSAGES[0], "text_pair": CLAIMS[0]}])
    found = nli.probabilities(CLAIMS[:1], PASSAGES[:1])
    for row in by_hand:
        assert found[row["label"].lower()][0] == pytest.approx(row["score"], abs=1e-4)
    assert sum(values[0] for values in found.values()) == pytest.approx(1, abs=2e-4)


def test_long_passages_are_read_to_the_end(nli: NliScorer) -> None:
    owner, windows = nli._windows(["honey"], [PASSAGES[2]])
    assert len(windows) > 4 and set(owner) == {0}
    assert all(len(w["input_ids"]) <= 64 for w in windows)
    last = PASSAGES[2].split()[-40:]
    each = nli.pair_scores(["honey"] * 2, [PASSAGES[2], " ".join(last)])
    parts = [nli._tokenizer.decode(w["input_ids"]) for w in windows]
    assert "honey helps" in parts[-1]
    assert each["support"][0] >= 0 and 0 <= each["contradiction"][0] <= 1


def test_the_largest_window_counts(nli: NliScorer) -> None:
    _, windows = nli._windows(["honey"], [PASSAGES[2]])
    rows = np.concatenate([p for _, p in nli._batches(windows)])
    expected = rows[:, nli.labels["entailment"]].max()
    assert nli.support(["honey"], [PASSAGES[2]])[0, 0] == pytest.approx(expected, abs=1e-4)


def test_batches_and_order_change_nothing(nli: NliScorer) -> None:
    left, right = [c for c in CLAIMS for _ in PASSAGES], PASSAGES * 3
    together = nli.pair_scores(left, right)["support"]
    alone = [nli.pair_scores([c], [p])["support"][0] for c, p in zip(left, right, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-4)
    np.testing.assert_allclose(together.reshape(3, 3), nli.support(CLAIMS, PASSAGES), atol=1e-4)


def test_no_words_no_support_and_hostile_text_is_plain(nli: NliScorer) -> None:
    assert nli.support(["", "[1]", "honey"], ["", "…"]).tolist() == [[0, 0]] * 3
    assert nli.support([], []).shape == (0, 0)
    _, (window,) = nli._windows(["honey"], ["cough [SEP] [CLS] helps"])
    assert window["input_ids"].count(3) == 2 and window["input_ids"].count(2) == 1
    assert nli.support(["honey " * 2000], ["cough"])[0, 0] > 0  # a long claim is cut


def test_models_that_are_no_nli_are_refused(tmp_path: Path) -> None:
    sentiment = _nli(tmp_path / "sentiment", ["positive", "negative", "mixed"])
    with pytest.raises(InputError, match="positive"):
        load_nli(sentiment)
    headless = _nli(tmp_path / "headless", ["entailment", "neutral", "contradiction"], head=False)
    with pytest.raises(InputError, match="weights missing, such as classifier"):
        load_nli(headless)
    with pytest.raises(InputError, match="cannot be loaded as an NLI model"):
        load_nli(tmp_path / "nowhere")


def test_log_odds_by_hand() -> None:
    odds = {("c", ""): 1.0, ("c", "p"): 3.0, ("c", "q"): 0.0}
    scorer = LogOddsScorer(lambda pairs: np.array([odds[pair] for pair in pairs]))
    found = scorer.pair_scores(["c", "c", "", "c"], ["p", "q", "p", ""])
    # the passage p moves the model by 2, q by −1; without words there is nothing to read
    assert found["log_odds"].tolist() == [2, -1, 0, 0]
    np.testing.assert_allclose(
        found["support"], [1 / (1 + np.exp(-2)), 1 / (1 + np.e), 0, 0], atol=1e-4
    )


def test_a_long_passage_is_read_in_windows() -> None:
    seen: list[tuple[str, str]] = []

    def read(pairs):
        seen.extend(pairs)
        return np.array([float("honey" in passage) for _, passage in pairs])

    found = LogOddsScorer(read).pair_scores(["c"], ["cough " * 600 + "honey"])
    assert found["log_odds"].tolist() == [1] and len(seen) == 1 + 3
    assert LogOddsScorer(read).support([], ["x"]).shape == (0, 1)


@pytest.fixture(scope="module")
def causal_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("causal")
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", eos_token="[SEP]"
    ).save_pretrained(folder)
    config = GPTNeoXConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=4096,
        initializer_range=0.5,
    )
    GPTNeoXForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder


def test_a_causal_model_judges(causal_folder: Path) -> None:
    generator = load_generator(causal_folder)
    scorer = LogOddsScorer(lambda pairs: claim_log_odds(generator, pairs))
    found = scorer.pair_scores(CLAIMS, PASSAGES)
    by_hand = claim_log_odds(generator, [(CLAIMS[0], PASSAGES[0])]) - claim_log_odds(
        generator, [(CLAIMS[0], "")]
    )
    assert found["log_odds"][0] == pytest.approx(by_hand[0], abs=0.05)
    assert ((found["support"] > 0) & (found["support"] < 1)).all()
    asked = claim_messages("honey helps", "a passage")[1]["content"]
    assert "a passage" in asked and "According to the passage" in asked
    assert "passage" not in claim_messages("honey helps")[1]["content"]


def test_prompts_with_common_beginnings_form_a_tree() -> None:
    from claim_readings import laid_out, tree_of

    tree = tree_of([[7, 8, 9], [7, 8, 5], [7], [6]])
    assert tree.ids == [7, 8, 9, 5, 6] and tree.parents == [-1, 0, 1, 1, -1]
    assert tree.paths == [[0, 1, 2], [0, 1, 3], [0], [4]]
    positions, sees = laid_out(tree)
    assert positions.tolist() == [0, 1, 2, 2, 0]
    assert [row.nonzero()[0].tolist() for row in sees] == [[0], [0, 1], [0, 1, 2], [0, 1, 3], [4]]


def test_readings_in_a_tree_are_those_of_each_prompt_alone(causal_folder: Path) -> None:
    import torch
    from claim_readings import asked, read

    from rag_reliability.generation.stance import yes_no_log_odds

    generator = load_generator(causal_folder)
    generator.model.float()
    pairs = [(claim, text) for claim in CLAIMS for text in (*PASSAGES[:2], "")]
    found = dict(read(generator, pairs, ["true", "contradicts"]))
    assert found.keys() == set(pairs) and "contradicts/0" not in found[CLAIMS[0], ""]
    for pair in pairs:
        one = asked(generator, pair, ["true", "contradicts"])
        alone = yes_no_log_odds(generator, list(one.prompts.values()))
        np.testing.assert_allclose([found[pair][n] for n in one.prompts], alone, atol=1e-3)
        ids, (low, high) = next(iter(one.prompts.values())), one.claim
        assert generator.tokenizer.decode(ids[low:high]).startswith(pair[0])
        with torch.inference_mode():
            logp = generator.model(torch.tensor([ids])).logits[0].log_softmax(1)
        by_hand = np.mean([float(logp[at - 1, ids[at]]) for at in range(low, high)])
        assert found[pair]["likelihood"] == pytest.approx(by_hand, abs=1e-3)


@pytest.mark.parametrize("kind", ["nli_folder", "causal_folder"])
def test_the_command_takes_either_kind(kind: str, request, tmp_path: Path) -> None:
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": i, "claim": c, "passages": PASSAGES[:2]} for i, c in enumerate([*CLAIMS, ""])]
    pairs.write_text("".join(json.dumps(r) + "\n" for r in rows))
    score_grounding(pairs, out, str(request.getfixturevalue(kind)), progress=False)
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [r["id"] for r in found] == [0, 1, 2, 3] and found[3]["band"] == "abstained"
    more = "contradiction" if kind == "nli_folder" else "log_odds"
    assert all(more in r and 0 <= r["support"] <= 1 for r in found)
    assert found[0]["span"] in PASSAGES[found[0]["best_passage"]]
