from __future__ import annotations

import dataclasses
import itertools
import re
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_reliability.records import Claim, Corpus, Document, InputError, Topic
from rag_reliability.reliability.rewording import (
    change_numbers,
    contradict,
    negate,
    reword,
    swap_antonym,
)
from rag_reliability.reliability.smoothing import smooth_prior
from rag_reliability.reliability.threat_reading import INSTRUCTIONS
from rag_reliability.reliability.threats import (
    THREATS,
    combine,
    crowd_trusted,
    flood,
    hedge,
    identifiable,
    impersonate,
    instruct,
    mimic_stance,
    pad_with_trusted,
    spoof_labels,
    stuff_query,
    twist_trusted,
)

HIGH = {"peer_reviewed", "government"}


def corpus(n=40, n_adversarial=10):
    documents = tuple(
        Document(
            docno=f"d{i:02d}",
            title="t",
            text=f"text {i}",
            source_type="ai_generated" if i < n_adversarial else "blog",
            verified=i % 3 == 0,
            adversarial=i < n_adversarial,
        )
        for i in range(n)
    )
    return Corpus("c", documents, (Topic("q", "query"),), {"q": {"d01": 2}})


def spoofed(before, after):
    pairs = zip(before.documents, after.documents, strict=True)
    return {b.docno: a.source_type for b, a in pairs if a != b}


def test_rate_zero_is_the_corpus_itself():
    original = corpus()
    assert spoof_labels(original, 0, seed=1) is original
    clean = corpus(n_adversarial=0)
    assert spoof_labels(clean, 1, seed=1) is clean


def test_rate_one_spoofs_every_adversary_and_nothing_else():
    original = corpus()
    after = spoof_labels(original, 1, seed=1)
    assert set(spoofed(original, after)) == {f"d{i:02d}" for i in range(10)}
    assert set(after.source_types[:10]) <= HIGH
    assert after.documents[10:] == original.documents[10:]
    assert after.qrels == original.qrels and after.topics == original.topics
    assert after.name == original.name


def test_relabelled_documents_are_unverified_and_otherwise_the_same():
    original = corpus()
    for before, after in zip(
        original.documents[:10], spoof_labels(original, 1, seed=1).documents, strict=False
    ):
        assert not after.verified
        expected = dataclasses.replace(before, source_type=after.source_type, verified=False)
        assert after == expected


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 50))
def test_larger_rates_spoof_a_superset_with_the_same_types(a, b, seed):
    low, high = sorted((a, b))
    original = corpus()
    few = spoofed(original, spoof_labels(original, low, seed=seed))
    many = spoofed(original, spoof_labels(original, high, seed=seed))
    assert few.items() <= many.items()
    assert len(few) == int((Decimal(repr(low)) * 10).to_integral_value(ROUND_HALF_UP))


def test_seeds_choose_and_the_order_of_documents_does_not():
    original = corpus()
    chosen = [set(spoofed(original, spoof_labels(original, 0.5, seed=s))) for s in range(6)]
    assert all(len(c) == 5 for c in chosen) and len({frozenset(c) for c in chosen}) > 1
    turned = dataclasses.replace(original, documents=original.documents[::-1])
    assert spoofed(turned, spoof_labels(turned, 0.5, seed=2)) == spoofed(
        original, spoof_labels(original, 0.5, seed=2)
    )


def test_target_types_are_the_only_ones_used():
    after = spoof_labels(corpus(), 1, target_types=("government",), seed=1)
    assert set(after.source_types[:10]) == {"government"}


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_bad_rates_are_refused(rate):
    with pytest.raises(InputError, match="spoof rate"):
        spoof_labels(corpus(), rate, seed=1)
    with pytest.raises(InputError, match="target_types"):
        spoof_labels(corpus(), 0.5, target_types=(), seed=1)


# ---- leaky verification --------------------------------------------------------------------


def leaked(after):
    return {d.docno for d in after.documents[:10] if d.verified}


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.integers(0, 50))
def test_leaks_are_nested_in_rate_and_in_leak_and_change_nothing_else(values, seed):
    (low, high), (few, many) = sorted(values[:2]), sorted(values[2:])
    original = corpus()
    small = spoof_labels(original, low, leak=few, seed=seed)
    assert leaked(small) <= leaked(spoof_labels(original, low, leak=many, seed=seed))
    untouched = {d.docno for d in original.documents if d.verified and d.docno < "d10"}
    changed = set(spoofed(original, spoof_labels(original, low, seed=seed)))
    assert leaked(small) - untouched <= changed
    wide = spoof_labels(original, high, leak=few, seed=seed)
    assert (leaked(small) & changed) <= leaked(wide)
    unmarked = [dataclasses.replace(d, verified=False) for d in small.documents]
    plain = spoof_labels(original, low, seed=seed).documents
    assert unmarked == [dataclasses.replace(d, verified=False) for d in plain]


@pytest.mark.parametrize(("leak", "n"), [(0, 0), (0.05, 1), (0.2, 2), (0.25, 3), (1, 10)])
def test_the_share_that_leaks_is_rounded_half_up(leak, n):
    assert len(leaked(spoof_labels(corpus(), 1, leak=leak, seed=4))) == n
    # As written in decimals: .29 · 50 in floating point is 14.499….
    assert len(spoofed(corpus(50, 50), spoof_labels(corpus(50, 50), 0.29, seed=1))) == 15


# ---- every threat --------------------------------------------------------------------------


def attacked():
    """Two topics; each has a trusted, a low-tier and an adversarial document, and a stance."""
    topics, documents, qrels = [], [], {}
    for n, (subject, stance) in enumerate((("exercise", "yes"), ("garlic", "no"))):
        qid, no = f"q{n}", "" if stance == "yes" else "not "
        claim = Claim(f"{qid}-c", f"{subject} does {no}help.", f"{subject} helps {no}at all.")
        topics.append(Topic(qid, f"Does {subject} help?", stance, claims=(claim,)))
        truth = f"In 40 trials {subject} did {no}help. It was tested in 1,200 people. It is safe."
        for name, kind, text, bad, label in (
            ("good", "government", truth, False, 2),
            ("low", "blog", f"I tried {subject} and it is {no}good.", False, 1),
            ("bad", "ai_generated", f"The truth on {subject} is hidden from people.", True, 0),
        ):
            docno, url = f"{qid}{name}", f"https://{kind}.example/{name}"
            document = Document(
                docno, f"On {subject}", text, kind, f"The {kind}", url, adversarial=bad
            )
            documents.append(dataclasses.replace(document, verified=name == "good"))
            qrels.setdefault(qid, {})[docno] = label
    return Corpus("c", tuple(documents), tuple(topics), qrels)


@pytest.mark.parametrize("name", THREATS)
@given(rates=st.tuples(st.floats(0, 1), st.floats(0, 1)), seed=st.integers(0, 20))
def test_threats_only_add_adversaries_or_change_what_they_declare(name, rates, seed):
    threat, original = THREATS[name], attacked()
    low, high = sorted(rates)
    few, many = threat(original, low, seed=seed), threat(original, high, seed=seed)
    assert original == attacked()
    for after in (few, many):
        n = len(original.documents)
        assert len({d.docno for d in after.documents}) == len(after.documents)
        for before, now in zip(original.documents, after.documents[:n], strict=True):
            declared = {"source_type": now.source_type, "source": now.source, "url": now.url}
            allowed = dataclasses.replace(before, **declared, verified=now.verified)
            assert now == (allowed if before.adversarial else before)
        for new in after.documents[n:]:
            assert new.adversarial and new.text.strip() and " " not in new.docno
            assert not new.verified
        added = {d.docno for d in after.documents[n:]}
        for qid, labels in after.qrels.items():
            assert labels.keys() - original.qrels[qid].keys() <= added
            assert original.qrels[qid].items() <= labels.items()
        assert after.topics == original.topics
    assert {d.docno: d for d in few.documents}.keys() <= {d.docno for d in many.documents}
    assert few == threat(original, low, seed=seed)
    assert threat(original, 0, seed=seed) is original


@pytest.mark.parametrize("name", THREATS)
def test_threats_attack_something_at_rate_one_whatever_the_order(name):
    original = attacked()
    after = THREATS[name](original, 1.0, seed=1)
    assert after != original
    turned = dataclasses.replace(
        original, documents=original.documents[::-1], topics=original.topics[::-1]
    )
    again = THREATS[name](turned, 1.0, seed=1)
    assert {d.docno: d.text for d in again.documents} == {d.docno: d.text for d in after.documents}


@pytest.mark.parametrize("name", THREATS)
def test_threats_can_be_repeated_and_leave_an_empty_corpus_alone(name):
    once = THREATS[name](attacked(), 1.0, seed=1)
    twice = THREATS[name](once, 1.0, seed=1)
    docnos = [d.docno for d in twice.documents]
    assert len(set(docnos)) == len(docnos) >= len(once.documents)
    empty = Corpus("e", (Document("d", "", "text", "blog"),))
    assert THREATS[name](empty, 1.0, seed=1) is empty
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="rate"):
            THREATS[name](attacked(), rate, seed=1)


def new(after):
    return after.documents[6:]


def test_identifiable_pages_say_the_false_claims_or_the_given_texts():
    pages = new(identifiable(attacked(), seed=1))
    assert {p.text for p in pages} == {"exercise helps at all.", "garlic helps not at all."}
    assert {p.source_type for p in pages} == {"ai_generated"}
    assert {p.claims for p in pages} == {("q0-c:false",), ("q1-c:false",)}
    given_texts = identifiable(attacked(), texts={"q0": ["one", "two"]}, source_type="blog", seed=1)
    assert {p.text for p in new(given_texts)} >= {"one", "two"} and len(new(given_texts)) == 3
    assert given_texts.qrels["q0"]["q0~false1"] == 0
    for texts in ({"q9": ["x"]}, {"q0": "x"}, {"q0": [" "]}):
        with pytest.raises(InputError, match="texts"):
            identifiable(attacked(), texts=texts, seed=1)


def test_topics_with_a_stance_alone_get_the_wrong_answer():
    bare = Corpus("c", (Document("d", "", "t", "blog"),), (Topic("q", "Is it so?", "yes"),))
    (page,) = identifiable(bare, seed=1).documents[1:]
    assert page.text.startswith("Is it so? The answer is no.")
    unknown = dataclasses.replace(bare, topics=(Topic("q", "Is it so?"),))
    assert identifiable(unknown, seed=1) is unknown


def test_floods_are_distinct_near_copies_that_declare_the_same():
    original = spoof_labels(attacked(), 1, leak=1, seed=1)
    copies = new(flood(original, n=4, seed=1))
    assert len({c.text for c in copies} | {d.text for d in original.documents}) == 8 + 6
    by_docno = {d.docno: d for d in original.documents}
    for copy in copies:
        source = by_docno[copy.docno.split("~")[0]]
        assert copy == dataclasses.replace(source, docno=copy.docno, text=copy.text)
        assert set(re.findall(r"\w+", source.text)) - set(re.findall(r"\w+", copy.text)) <= {
            "The",
            "people",
        }
    spread = new(flood(attacked(), n=4, own_hosts=True, seed=1))
    assert len({c.source for c in spread}) == 8 and not any(c.verified for c in spread)
    with pytest.raises(InputError, match="n = 0"):
        flood(attacked(), n=0, seed=1)


def test_stuffed_pages_open_with_the_query():
    pages = new(stuff_query(attacked(), seed=1))
    assert {p.content for p in pages} == {
        "Does exercise help? The truth on exercise is hidden from people.",
        "Does garlic help? The truth on garlic is hidden from people.",
    }


def test_twisted_copies_contradict_sentence_by_sentence():
    twisted = {p.docno: p for p in new(twist_trusted(attacked(), seed=1))}
    assert twisted["q0good~twisted"].text == (
        "In 40 trials exercise did not help. It was not tested in 1,200 people. It is not safe."
    )
    assert twisted["q1good~twisted"].text.startswith("In 40 trials garlic did help.")
    assert {p.source_type for p in twisted.values()} == {"ai_generated"}
    plain = attacked()
    documents = (dataclasses.replace(plain.documents[0], text="Hello there."), *plain.documents[1:])
    dull = dataclasses.replace(plain, documents=documents)
    assert [p.docno for p in new(twist_trusted(dull, seed=1))] == ["q1good~twisted"]
    assert len(new(twist_trusted(plain, trusted_types=("blog",), seed=1))) == 2


def test_padding_lifts_a_smoothed_prior_and_crowding_lowers_a_trusted_one():
    def vectors(of):
        bag = sorted({w for d in of.documents for w in re.findall(r"\w+", d.text.lower())})
        counts = np.array(
            [[d.text.lower().split().count(w) for w in bag] for d in of.documents], dtype=float
        )
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)

    def smoothed(of):
        prior = np.where(of.source_types == "government", 0.9, 0.3)
        values = smooth_prior(prior, vectors(of), 1, 0.5)
        return dict(zip(of.docnos.tolist(), values.tolist(), strict=True))

    base = attacked()
    kept = tuple(d for d in base.documents if d.docno.startswith("q0"))
    one = Corpus("c", kept, base.topics[:1], {"q0": base.qrels["q0"]})
    before = smoothed(one)
    assert smoothed(pad_with_trusted(one, seed=1))["q0~padded0"] > before["q0bad"]
    crowded = crowd_trusted(one, n=1, seed=1)
    twin = dataclasses.replace(kept[0], docno="twin")
    guarded = dataclasses.replace(one, documents=(*kept, twin))
    assert smoothed(crowded)["q0good"] < smoothed(guarded)["q0good"]
    assert crowded.qrels["q0"]["q0good~crowd0"] == 2


@pytest.mark.parametrize("kind", INSTRUCTIONS)
def test_instructions_ask_for_the_wrong_answer(kind):
    pages = new(instruct(attacked(), kinds=(kind,), seed=1))
    assert {"No" in p.text.split("\n", 1)[1] for p in pages if "exercise" in p.text} == {True}
    assert {"Yes" in p.text.split("\n", 1)[1] for p in pages if "garlic" in p.text} == {True}


def test_instruction_kinds_are_drawn_and_checked():
    texts = {p.text for s in range(30) for p in new(instruct(attacked(), seed=s))}
    assert any("<|im_start|>system" in t for t in texts) and any("[INST]" in t for t in texts)
    for kinds in ((), ("polite",)):
        with pytest.raises(InputError, match="kinds"):
            instruct(attacked(), kinds=kinds, seed=1)


def test_hedged_pages_keep_the_false_text_and_mimics_the_trusted_words():
    for page in new(hedge(attacked(), seed=1)):
        assert re.search(r"\. The truth on \w+ is hidden from people\. ", page.text)
    mimics = {p.docno: p.text for p in new(mimic_stance(attacked(), seed=1))}
    words = re.sub(r"[\d,]", "", mimics["q0~mimic"])
    assert words.startswith("In  trials exercise did help. It was tested in  people.")
    assert "In 40 trials" not in mimics["q0~mimic"] and "412 did well" in mimics["q0~mimic"]
    assert "874 did well" in mimics["q1~mimic"]


def test_impersonators_borrow_a_name_but_not_a_host():
    after = impersonate(attacked(), seed=1)
    for document in (d for d in after.documents if d.adversarial):
        assert (document.source, document.source_type) == ("The government", "government")
        assert document.url.startswith("https://government.example.pages-of-record.example/")


def test_steps_apply_in_turn_to_what_came_before():
    steps = [("identifiable", 1.0), ("flooding", 0.5), ("spoofed", 1.0)]
    after = combine(attacked(), steps, seed=3)
    by_hand = identifiable(attacked(), 1.0, seed=3)
    by_hand = spoof_labels(flood(by_hand, 0.5, seed=3), 1.0, seed=3)
    assert after == by_hand
    adversarial = [d for d in after.documents if d.adversarial]
    assert len(adversarial) == 4 + 2 * 5 and {d.source_type for d in adversarial} <= HIGH
    with pytest.raises(InputError, match="unknown threat 'nuisance'; known: identifiable"):
        combine(attacked(), [("nuisance", 1.0)], seed=1)
    with pytest.raises(InputError, match="flooding rate = 2"):
        combine(attacked(), [("flooding", 2.0)], seed=1)


def test_taken_names_are_left_alone():
    taken = attacked()
    squatter = dataclasses.replace(taken.documents[1], docno="q0~false0")
    taken = dataclasses.replace(taken, documents=(*taken.documents, squatter))
    after = identifiable(taken, seed=1)
    assert [d.docno for d in after.documents[6:]].count("q0~false0") == 1
    assert "q0~false0.2" in after.docnos


# ---- wording -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Vitamin C does not cure colds.", "Vitamin C does cure colds."),
        ("Vitamin C does cure colds.", "Vitamin C does not cure colds."),
        ("It cannot help.", "It can help."),
        ("It can help.", "It cannot help."),
        ("Zinc may help.", "Zinc cannot help."),  # "may not help" would not deny it
        ("They aren't safe.", "They are safe."),
        ("It won't help.", "It will help."),
        ("It can’t help.", "It can help."),
        ("There is no benefit.", "There is some benefit."),
        ("No trial has shown this.", "Some trial has shown this."),
        ("It never helps.", "It often helps."),
        ("Neither A nor B was safe.", "Both A and B was safe."),
        ("Zinc shortens colds.", "Zinc does not shorten colds."),
        ("The trial showed a benefit.", "The trial did not show a benefit."),
        ("People who are ill should rest.", "People who are ill should not rest."),
        ("Zinc has been tested.", "Zinc has not been tested."),
        ("Yes, creams can treat it.", "No, creams cannot treat it."),
        ("No, ginger cannot cure it.", "Yes, ginger can cure it."),
        ("Is zinc safe?", None),
        ("It is not only safe but also cheap.", None),
        ("It is not true that it does not help.", None),  # two negations
        ("Zinc for colds.", None),
    ],
)
def test_negation(sentence, expected):
    assert negate(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Risk was higher.", "Risk was lower."),
        ("Safe for adults.", "Dangerous for adults."),
        ("Ineffective here.", "Effective here."),
        ("Nothing to swap.", None),
        ("Is it safe?", None),
        ("A less-known herb.", None),
    ],
)
def test_antonyms(sentence, expected):
    assert swap_antonym(sentence) == expected


@pytest.mark.parametrize(
    "text", ["COVID-19 and B12", "in 2019", "see [12]", "1990-2000", "10-year olds", "no number"]
)
def test_numbers_of_names_years_and_citations_stay(text):
    assert change_numbers(text, np.random.default_rng(1)) is None


@given(st.integers(0, 10**7), st.integers(0, 99))
def test_numbers_really_change_and_keep_their_form(n, seed):
    rng = np.random.default_rng(seed)
    for written in (str(n), f"{n:,}", f"{n / 10:.1f}"):
        new = change_numbers(f"Of {written} people", rng)
        if re.fullmatch(r"(19|20)\d\d", written):
            assert new is None
        else:
            (found,) = re.findall(r"[\d.,]+", new)
            assert float(found.replace(",", "")) != float(written.replace(",", ""))
            assert found.count(".") == written.count(".")


def test_percentages_become_the_rest():
    rng = np.random.default_rng(1)
    assert change_numbers("in 20% and 2.5 percent", rng) == "in 80% and 97.5 percent"
    assert change_numbers("in 50 % of 0 cases", rng) == "in 10 % of 10 cases"


NEGATIVE = re.compile(r"\b(?:not|cannot)\b")
SUBJECTS = ("Zinc", "The vaccine", "This treatment", "A low dose")
AUXILIARIES = ("is", "was", "can", "could", "will", "should", "does")
RESTS = ("safe for adults", "help people with asthma", "good, as many say")


@pytest.mark.parametrize("parts", list(itertools.product(SUBJECTS, AUXILIARIES, RESTS)))
def test_one_contradiction_flips_the_polarity_and_two_restore_it(parts):
    sentence = " ".join(parts) + "."
    once = contradict(sentence, np.random.default_rng(1))
    assert len(NEGATIVE.findall(once)) == 1
    assert contradict(once, np.random.default_rng(1)) == sentence


@given(st.integers(0, 200))
def test_rewordings_differ_but_keep_negations_and_numbers(seed):
    text = "Most people do not need 3 scans. They also show changes. It helps in 20% of cases."
    new = reword(text, np.random.default_rng(seed))
    assert new != text
    assert re.findall(r"\d+|\bnot\b", new) == re.findall(r"\d+|\bnot\b", text)
    assert new == reword(text, np.random.default_rng(seed))
