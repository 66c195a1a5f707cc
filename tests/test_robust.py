from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rag_reliability.records import InputError, Pool
from rag_reliability.reliability.evidence import OPTIONAL
from rag_reliability.reliability.independent_set import first_maximum
from rag_reliability.reliability.rerank import rerank, tie_ranks
from rag_reliability.reliability.robust import (
    NEEDS,
    RULES,
    UNGUARDED,
    Evidence,
    RobustSettings,
    rank_robust,
    top_docids,
)

PRIORS = [0.25, 0.375, 0.5, 0.75, 1.0]
PRIOR = st.sampled_from(PRIORS)
SEED = st.integers(0, 2**32 - 1)
TRUSTING = sorted(set(RULES) - set(UNGUARDED))
READING = ("stance_consistent", "stance_verified")


@st.composite
def cases(draw, topics=3, most=7):
    """Evidence with every field, ties and padding, names in another order than rows."""
    n, m, seed = draw(st.integers(1, topics)), draw(st.integers(1, most)), draw(SEED)
    rng = np.random.default_rng(seed)  # values by numpy: drawing each by hypothesis is slow
    shape = (n, m)
    docids = rng.permuted(np.tile(np.arange(m), (n, 1)), axis=1)
    docids[np.arange(m)[None, :] >= rng.integers(1, m + 1, size=(n, 1))] = -1
    conflicts = rng.random((n, m, m)) < rng.random()
    evidence = Evidence(
        docids,
        # Sixty-fourths: products and their ties are exact in floating point.
        np.where(docids < 0, -np.inf, rng.integers(-16, 65, size=shape) / 64),
        rng.choice(PRIORS, shape),
        rng.random(shape) < rng.random(),
        copies=rng.integers(0, 4, shape),
        conflicts=conflicts | conflicts.transpose(0, 2, 1),
        source=rng.integers(-1, 3, shape),
        stance=np.where(rng.random(shape) < 0.8, rng.integers(-4, 5, shape) / 2, np.nan),
        lexical=rng.integers(0, 4, shape).astype(float),
    )
    docnos = rng.permutation([f"d{i}" for i in range(m)])
    k = draw(st.integers(1, m))
    window = draw(st.one_of(st.none(), st.integers(k, m)))
    return evidence, docnos, RobustSettings(k=k, window=window)


def marks(evidence, seed):
    """Some candidates, bool (n_topics, m)."""
    return np.random.default_rng(seed).random(evidence.sims.shape) < 0.4


def one(sims, prior, verified=None, **fields):
    """One topic of documents 0, 1, 2, …"""
    n = len(sims)
    row = {name: np.asarray(value)[None] for name, value in fields.items()}
    return Evidence(
        np.arange(n)[None],
        np.array([sims], dtype=float),
        np.array([prior], dtype=float),
        np.array([verified if verified is not None else [False] * n]),
        **row,
    )


def ranked(evidence, rule, **how):
    """Docids and scores of the one topic, all of it."""
    n = evidence.docids.shape[1]
    how = {"k": n, "window": None} | how
    docnos = [f"d{i}" for i in range(n)]
    result = rank_robust(evidence, rule, ["q"], docnos, RobustSettings(**how))
    return result.docids[0].tolist(), result.scores[0].tolist()


# --- Hand-worked examples -------------------------------------------------------------------

SIMS = [0.8, 0.7, 0.6, 0.5]
LAMBDAS = [0.9, 0.25, 0.5, 1.0]
CHECKED = [False, False, True, True]


@pytest.mark.parametrize(
    ("rule", "order", "scores"),
    [
        ("similarity", [0, 1, 2, 3], SIMS),
        ("source_aware", [0, 3, 2, 1], [0.72, 0.5, 0.3, 0.175]),
        # λ_eff .5 .5 .5 1
        ("verified_boost", [3, 0, 1, 2], [0.5, 0.4, 0.35, 0.3]),
        ("verified_floor", [3, 0, 1, 2], [0.5, 0.4, 0.35, 0.3]),
        # λ_eff .5 .25 .5 1
        ("verified_min", [3, 0, 2, 1], [0.5, 0.4, 0.3, 0.175]),
        # λ_eff .8 · .9 + .2 · .3 = .78, .8 · .25 + .2 · .3 = .26, .5, 1
        ("uncertain_labels", [0, 3, 2, 1], [0.624, 0.5, 0.3, 0.182]),
        # by λ: 3 0 2 1, so (n - rank) / n = .75 .25 .5 1
        ("metadata_linear", [0, 3, 2, 1], [0.775, 0.75, 0.55, 0.475]),
    ],
)
def test_hand_worked(rule, order, scores):
    got, values = ranked(one(SIMS, LAMBDAS, CHECKED), rule)
    assert got == order
    np.testing.assert_allclose(values, scores)


def test_a_verified_low_label_costs_under_boost_but_not_under_floor():
    evidence = one([0.9, 0.8], [0.3, 0.95], [True, False])
    assert ranked(evidence, "verified_boost")[0] == [1, 0]  # .27 against .40
    assert ranked(evidence, "verified_floor")[0] == [0, 1]  # .45 against .40


def test_hard_filter_leaves_low_tiers_to_the_end():
    order, scores = ranked(one(SIMS, LAMBDAS), "hard_filter")
    assert order == [0, 2, 3, 1]
    np.testing.assert_allclose(scores, [0.8, 0.6, 0.5, -0.5])  # .5 - 1: not scored


def test_outside_the_window_comes_before_what_was_left_out():
    order, scores = ranked(one(SIMS, LAMBDAS), "hard_filter", k=2, window=2)
    assert order == [0, 2]
    np.testing.assert_allclose(scores, [0.8, -0.2])


def test_metadata_rrf_by_hand():
    order, scores = ranked(one(SIMS, LAMBDAS), "metadata_rrf")
    by_prior = [1, 3, 2, 0]
    expected = [0.5 / (61 + i) + 0.5 / (61 + by_prior[i]) for i in range(4)]
    assert order == [0, 3, 1, 2]
    np.testing.assert_allclose(scores, [expected[i] for i in order])


def test_collapse_drops_the_less_trusted_copy():
    # 0 and 1 are near copies, 2 and 3 too
    evidence = one([0.9, 0.8, 0.7, 0.6], [0.95, 0.5, 0.5, 0.5], CHECKED, copies=[7, 7, 9, 9])
    assert ranked(evidence, "collapse")[0] == [0, 2, 3, 1]
    assert ranked(evidence, "verified_collapse")[0] == [0, 1, 2, 3]  # none here is a checked one's
    checked = dataclasses.replace(evidence, verified=np.array([[False, True, False, True]]))
    assert ranked(checked, "verified_collapse")[0] == [1, 3, 0, 2]
    assert ranked(checked, "collapse")[0] == [0, 3, 1, 2]  # the label counts first


def test_quota_of_publishers_and_of_low_tiers():
    sims = [0.9, 0.8, 0.7, 0.6, 0.5]
    high = [0.9, 0.9, 0.9, 0.9, 0.8]
    evidence = one(sims, high, source=[1, 1, 1, -1, -1])
    assert ranked(evidence, "source_quota", quota=2)[0] == [0, 1, 3, 4, 2]
    unknown = one(sims, high, source=[-1] * 5)
    assert ranked(unknown, "source_quota", quota=1)[0] == [0, 1, 2, 3, 4]
    low = one(sims, [0.3, 0.4, 0.9, 0.3, 0.9], source=[0, 1, 2, 3, 4])
    assert ranked(low, "source_quota", quota=1)[0] == [0, 2, 4, 1, 3]


def test_independent_set_is_the_majority_and_then_the_more_reliable():
    conflicts = np.zeros((4, 4), dtype=bool)
    conflicts[0, 1:] = conflicts[1:, 0] = True  # 0 contradicts all others
    evidence = one(SIMS, [0.9, 0.5, 0.5, 0.5], conflicts=conflicts)
    assert ranked(evidence, "independent_set")[0] == [1, 2, 3, 0]
    pair = np.zeros((2, 2), dtype=bool)
    pair[0, 1] = pair[1, 0] = True
    assert ranked(one([0.9, 0.8], [0.5, 0.9], conflicts=pair), "independent_set")[0] == [1, 0]


def test_lexical_rules():
    evidence = one([0.9, 0.8, 0.7], [0.5, 0.6, 0.7], lexical=[0.0, 1.0, 3.0])
    assert ranked(evidence, "bm25") == ([2, 1, 0], [3.0, 1.0, 0.0])
    order, scores = ranked(evidence, "bm25_dense")
    assert order == [0, 2, 1]  # 1/61 + 1/63 twice, tied by similarity, over 2/62
    np.testing.assert_allclose(scores, [1 / 61 + 1 / 63, 1 / 61 + 1 / 63, 2 / 62])


# --- Properties ---------------------------------------------------------------------------------


@given(cases(), st.sampled_from(TRUSTING))
@settings(max_examples=200, deadline=None)
def test_a_prior_of_one_gives_similarity_exactly(case, rule):
    evidence, docnos, how = case
    flat = dataclasses.replace(evidence, prior=np.ones(evidence.sims.shape))
    ties = tie_ranks(docnos)
    expected = top_docids(flat, "similarity", ties, how)
    np.testing.assert_array_equal(top_docids(flat, rule, ties, how), expected)


@given(cases(), st.sampled_from(UNGUARDED))
@settings(max_examples=50, deadline=None)
def test_lexical_rules_do_not_read_priors(case, rule):
    evidence, docnos, how = case
    flat = dataclasses.replace(evidence, prior=np.ones(evidence.sims.shape))
    np.testing.assert_array_equal(
        top_docids(flat, rule, tie_ranks(docnos), how),
        top_docids(evidence, rule, tie_ranks(docnos), how),
    )


def varied(evidence):
    """Whether a λ of the first topic is below 1: where none is, every rule is similarity."""
    return bool((evidence.prior[0][evidence.valid[0]] < 1).any())


# A verified passage's λ is its say in the stance rules' reference, which may help others more.
@given(
    cases(topics=1), st.sampled_from(sorted(set(RULES) - set(READING))), st.integers(0, 6), PRIOR
)
@settings(max_examples=250, deadline=None)
def test_raising_a_prior_never_lowers_the_document(case, rule, column, prior):
    evidence, docnos, how = case
    column %= int(evidence.valid.sum())
    raised = evidence.prior.copy()
    raised[0, column] = max(prior, raised[0, column])
    after = dataclasses.replace(evidence, prior=raised)
    assume(varied(evidence) and varied(after))
    docid, ties = evidence.docids[0, column], tie_ranks(docnos)
    before = top_docids(evidence, rule, ties, how)[0].tolist()
    if docid in before:
        now = top_docids(after, rule, ties, how)[0].tolist()
        assert docid in now and now.index(docid) <= before.index(docid)


@given(cases(topics=1))
@settings(max_examples=200, deadline=None)
def test_floor_keeps_the_unverified_in_order_and_no_verified_one_falls_behind_them(case):
    evidence, docnos, _ = case
    m = evidence.docids.shape[1]
    how, ties = RobustSettings(k=m, window=None), tie_ranks(docnos)
    before = top_docids(evidence, "similarity", ties, how)[0].tolist()
    after = top_docids(evidence, "verified_floor", ties, how)[0].tolist()
    checked = set(evidence.docids[0][evidence.verified[0] & evidence.valid[0]].tolist())
    assert [d for d in before if d not in checked] == [d for d in after if d not in checked]
    for good, other in itertools.combinations(before, 2):
        if good in checked and other not in checked and other >= 0:
            assert after.index(good) < after.index(other)


def shown_adversarial(evidence, rule, docnos, how, adversarial):
    top = top_docids(evidence, rule, tie_ranks(docnos), how)
    return [
        int(np.isin(row, ids[ids >= 0]).sum()) for row, ids in zip(top, adversarial, strict=True)
    ]


def adversaries(evidence, marked):
    return np.where(marked & evidence.valid, evidence.docids, -1)


@given(cases(), SEED)
@settings(max_examples=300, deadline=None)
def test_no_more_adversarial_documents_than_similarity_while_none_is_verified(case, seed):
    evidence, docnos, how = case
    marked = marks(evidence, seed)
    honest_labels = dataclasses.replace(evidence, verified=evidence.verified & ~marked)
    adversarial = adversaries(evidence, marked)
    # verified_boost: only where every verified document has λ >= cap
    high = np.where(honest_labels.verified, np.maximum(evidence.prior, how.cap), evidence.prior)
    # verified_min: only where every honest document has λ_eff >= cap
    all_high = np.where(marked, evidence.prior, np.maximum(evidence.prior, how.cap))
    for rule, prior in (
        ("verified_floor", evidence.prior),
        ("verified_boost", high),
        ("verified_min", all_high),
    ):
        now = dataclasses.replace(honest_labels, prior=prior)
        base = shown_adversarial(now, "similarity", docnos, how, adversarial)
        got = shown_adversarial(now, rule, docnos, how, adversarial)
        assert all(g <= b for g, b in zip(got, base, strict=True)), rule


@given(cases(), SEED)
@settings(max_examples=100, deadline=None)
def test_no_more_adversarial_documents_where_their_labels_are_the_lowest(case, seed):
    evidence, docnos, how = case
    marked = marks(evidence, seed)
    prior = np.where(marked, np.minimum(evidence.prior, 0.5), np.maximum(evidence.prior, 0.5))
    now = dataclasses.replace(evidence, prior=prior)
    adversarial = adversaries(evidence, marked)
    base = shown_adversarial(now, "similarity", docnos, how, adversarial)
    got = shown_adversarial(now, "source_aware", docnos, how, adversarial)
    assert all(g <= b for g, b in zip(got, base, strict=True))


@given(cases(), st.sampled_from(sorted(RULES)), SEED)
@settings(max_examples=200, deadline=None)
def test_order_of_candidates_does_not_matter(case, rule, seed):
    evidence, docnos, how = case
    n, m = evidence.sims.shape
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.tile(np.arange(m), (n, 1)), axis=1)
    np.testing.assert_array_equal(
        top_docids(evidence.columns(shuffled), rule, tie_ranks(docnos), how),
        top_docids(evidence, rule, tie_ranks(docnos), how),
    )


def row_of(evidence, t):
    fields = {f.name: getattr(evidence, f.name) for f in dataclasses.fields(evidence)}
    return Evidence(**{name: a if a is None else a[t : t + 1] for name, a in fields.items()})


@given(cases(), st.sampled_from(sorted(RULES)))
@settings(max_examples=200, deadline=None)
def test_topics_together_equal_topics_one_by_one(case, rule):
    evidence, docnos, how = case
    ties = tie_ranks(docnos)
    together = top_docids(evidence, rule, ties, how)
    apart = [top_docids(row_of(evidence, t), rule, ties, how) for t in range(len(together))]
    np.testing.assert_array_equal(together, np.concatenate(apart))


@given(cases(), st.sampled_from(sorted(RULES)))
@settings(max_examples=200, deadline=None)
def test_what_is_outside_the_window_does_not_count(case, rule):
    evidence, docnos, how = case
    assume(how.window is not None)
    ties, m = tie_ranks(docnos), evidence.docids.shape[1]
    every = top_docids(evidence, "similarity", ties, RobustSettings(k=m, window=None))
    seen = every[:, : how.reading if rule in READING else how.window]
    top = top_docids(evidence, rule, ties, how)
    if rule not in ("hard_filter", "independent_set", "collapse", "verified_collapse"):
        assert all(
            set(a) <= set(b) | {-1} for a, b in zip(top.tolist(), seen.tolist(), strict=True)
        )
    # Whatever is known of a document outside the window, it changes nothing.
    inside = (evidence.docids[:, :, None] == seen[:, None, :]).any(axis=2) & evidence.valid
    other = dataclasses.replace(
        evidence,
        verified=np.where(inside, evidence.verified, ~evidence.verified),
        copies=np.where(inside, evidence.copies, 0),
        source=np.where(inside, evidence.source, 0),
        conflicts=evidence.conflicts | ~inside[:, :, None] | ~inside[:, None, :],
        lexical=np.where(inside, evidence.lexical, 99.0),
        stance=np.where(inside, evidence.stance, 9.0),
    )
    np.testing.assert_array_equal(top_docids(other, rule, ties, how), top)


@given(cases(), st.sampled_from(sorted(RULES)))
@settings(max_examples=150, deadline=None)
@pytest.mark.filterwarnings("ignore:k =")
def test_ranking_and_fast_path_agree(case, rule):
    evidence, docnos, how = case
    qids = [f"q{t}" for t in range(len(evidence.docids))]
    ranking = rank_robust(evidence, rule, qids, docnos, how)  # checks finite, falling scores
    top = top_docids(evidence, rule, tie_ranks(docnos), how)
    assert top.shape == (len(qids), how.k)
    assert ranking.k == min(how.k, int(evidence.valid.sum(axis=1).min()))
    np.testing.assert_array_equal(ranking.docids, top[:, : ranking.k])


@given(cases())
@settings(max_examples=150, deadline=None)
def test_same_as_the_study_reranker(case):
    evidence, docnos, how = case
    full = dataclasses.replace(
        evidence,
        docids=np.tile(np.arange(evidence.sims.shape[1]), (len(evidence.sims), 1)),
        sims=np.where(evidence.valid, evidence.sims, -0.25),
    )
    n = len(full.sims)
    qids = [f"q{t}" for t in range(n)]
    pool = Pool(full.docids, full.sims)
    for rule in ("similarity", "source_aware"):
        ours = rank_robust(full, rule, qids, docnos, how)
        theirs = rerank(pool, full.prior, qids, docnos, how.k, rule=rule, window=how.window)
        scores = full.sims if rule == "similarity" else np.maximum(full.sims, 0) * full.prior
        for t in range(n):
            if rule == "similarity" or np.ptp(full.prior[t]) > 0:  # else: similarity, by the guard
                np.testing.assert_allclose(ours.scores[t], theirs.scores[t])
            # Positive ties go by docno there, by similarity first here.
            positive = scores[t][scores[t] > 0]
            if len(set(positive)) == len(positive):
                assert ours.docids[t].tolist() == theirs.docids[t].tolist()


@given(st.integers(0, 9).flatmap(lambda n: arrays(bool, (n, n))))
@settings(max_examples=200, deadline=None)
def test_independent_set_is_exact(edges):
    n = len(edges)
    joined = (edges | edges.T) & ~np.eye(n, dtype=bool)
    graph = tuple(sum(1 << j for j in range(n) if joined[i, j]) for i in range(n))
    # Sets of one size come in lexicographic order, so the first found is the first.
    best = next(
        chosen
        for size in range(n, -1, -1)
        for chosen in itertools.combinations(range(n), size)
        if not joined[np.ix_(chosen, chosen)].any()
    )
    assert first_maximum(graph) == sum(1 << i for i in best)


def test_independent_set_of_twenty_is_found():
    ring = tuple((1 << (i + 1) % 20) | (1 << (i - 1) % 20) for i in range(20))
    assert first_maximum(ring) == sum(1 << i for i in range(0, 20, 2))
    rng = np.random.default_rng(0)
    edges = np.triu(rng.random((20, 20)) < 0.5, 1)
    edges |= edges.T
    graph = tuple(sum(1 << j for j in range(20) if edges[i, j]) for i in range(20))
    chosen = [i for i in range(20) if first_maximum(graph) >> i & 1]
    assert not edges[np.ix_(chosen, chosen)].any()
    assert not any(
        not edges[np.ix_(other, other)].any()
        for other in itertools.combinations(range(20), len(chosen) + 1)
    )


@given(cases(topics=1), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
@settings(max_examples=150, deadline=None)
def test_metadata_rankers_do_what_haystack_does(case, weight):
    evidence, docnos, how = case
    assume(varied(evidence))
    how = dataclasses.replace(how, window=None, meta_weight=weight)
    rows = [i for i in range(evidence.docids.shape[1]) if evidence.docids[0, i] >= 0]
    sims, prior = evidence.sims[0], evidence.prior[0]
    found = sorted(rows, key=lambda i: (-sims[i], docnos[evidence.docids[0, i]]))
    by_meta = sorted(found, key=lambda i: prior[i], reverse=True)  # stable, as Python's sort is
    for rule in ("metadata_linear", "metadata_rrf"):
        scores = dict.fromkeys(found, 0.0)
        for place, (row, other) in enumerate(zip(found, by_meta, strict=True)):
            if rule == "metadata_rrf":
                scores[row] += 1 / (61 + place) * (1 - weight)
                scores[other] += 1 / (61 + place) * weight
            else:
                scores[row] += max(sims[row], 0.0) * (1 - weight)
                scores[other] += (len(found) - place) / len(found) * weight
        # Rounded: the two ways of adding differ in the last bits.
        expected = sorted(found, key=lambda i: round(scores[i], 12), reverse=True)
        got = top_docids(evidence, rule, tie_ranks(docnos), how)[0]
        places = [
            round(scores[int(np.flatnonzero(evidence.docids[0] == d)[0])], 12)
            for d in got
            if d >= 0
        ]
        assert places == [round(scores[i], 12) for i in expected][: how.k]


# --- Bad input ----------------------------------------------------------------------------------


def test_unknown_rule_and_missing_field():
    evidence = one(SIMS, LAMBDAS)
    with pytest.raises(InputError, match="unknown rule 'trust_me'; known: similarity"):
        ranked(evidence, "trust_me")
    for rule, needs in NEEDS.items():
        assert set(needs) <= set(OPTIONAL)
        with pytest.raises(InputError, match=f"rule '{rule}' needs '{needs[0]}'"):
            ranked(evidence, rule)


@pytest.mark.parametrize("prior", [0.0, 1.5, float("nan")])
def test_priors_outside_the_range(prior):
    with pytest.raises(InputError, match="expected 0 < λ <= 1"):
        one([0.5, 0.4], [0.5, prior])


def test_nan_similarity_and_shapes():
    with pytest.raises(InputError, match="NaN"):
        one([0.5, float("nan")], [0.5, 0.5])
    with pytest.raises(ValueError, match="conflicts has shape"):
        one([0.5, 0.4], [0.5, 0.5], conflicts=[True, False])


@pytest.mark.parametrize(
    "wrong",
    [{"k": 0}, {"window": 2}, {"cap": 0}, {"quota": 0}, {"label_error": 1.1}, {"lowest": 0}],
)
def test_settings_are_checked(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        RobustSettings(**wrong)


def test_too_few_candidates_warn_and_pad():
    evidence = one(SIMS, LAMBDAS)
    with pytest.warns(UserWarning, match="only 4 candidates"):
        assert rank_robust(evidence, "similarity", ["q"], list("abcd"), RobustSettings()).k == 4
    assert top_docids(evidence, "similarity", np.arange(4), RobustSettings()).tolist() == [
        [0, 1, 2, 3, -1]
    ]


def test_no_topics():
    none = np.zeros((0, 5))
    evidence = Evidence(none.astype(np.int64), none, none, none.astype(bool))
    assert rank_robust(evidence, "verified_boost", [], ["a"], RobustSettings()).docids.size == 0


def test_stance_rules_by_hand():
    # two verified say no (-1), an unverified one says no, a more similar one says yes (1)
    evidence = one(
        [0.9, 0.8, 0.7, 0.6],
        [0.3, 0.4, 0.95, 0.9],
        [False, False, True, True],
        stance=[1.0, -1.0, -1.0, -1.0],
        conflicts=np.zeros((4, 4), dtype=bool),
        source=[0, 1, 2, 3],
    )
    assert ranked(evidence, "stance_consistent")[0] == [1, 2, 3, 0]
    assert ranked(evidence, "stance_verified")[0] == [2, 3, 1, 0]
    # only one verified passage was read: no reference, so verified_floor decides
    alone = dataclasses.replace(evidence, verified=np.array([[False, False, True, False]]))
    assert ranked(alone, "stance_consistent") == ranked(alone, "verified_floor")
    # the liar's text contradicts a verified one word by word: no question is needed to see that
    conflicts = np.zeros((1, 4, 4), dtype=bool)
    conflicts[0, 0, 2] = conflicts[0, 2, 0] = True
    caught = dataclasses.replace(alone, conflicts=conflicts, stance=np.full((1, 4), np.nan))
    assert ranked(caught, "stance_consistent")[0] == [2, 1, 3, 0]


def test_stance_rules_look_past_a_flooded_window():
    lies, honest = 3, 3
    evidence = one(
        [0.9, 0.89, 0.88, 0.8, 0.7, 0.6],
        [0.95] * lies + [0.9, 0.9, 0.5],
        [False] * lies + [True, True, False],
        stance=[1.0] * lies + [-1.0] * honest,
        conflicts=np.zeros((6, 6), dtype=bool),
        source=list(range(6)),
    )
    assert ranked(evidence, "stance_consistent", k=3, window=3)[0] == [3, 4, 5]
    assert ranked(evidence, "verified_floor", k=3, window=3)[0] == [0, 1, 2]


def test_declaring_the_type_of_the_honest_does_not_switch_verification_off():
    evidence = one([0.9, 0.8, 0.7, 0.6], [0.95] * 4, [False, False, True, True])
    for rule in ("verified_boost", "verified_floor", "verified_min"):
        assert ranked(evidence, rule)[0][:2] == [2, 3]
