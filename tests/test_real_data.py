"""Notebook 10: a corpus of somebody else's, its hosts, rankings, answers; and without a corpus."""

from __future__ import annotations

from dataclasses import replace

import nbformat
import pandas as pd
import pytest

from rag_reliability import runner
from rag_reliability.datasets.read import read_corpus
from rag_reliability.datasets.write import write_beir
from rag_reliability.experiment import real_answers, real_data, real_hosts, real_views
from rag_reliability.experiment.study import open_study
from rag_reliability.experiment.threat_command import write_testbed
from rag_reliability.files import cache_root
from rag_reliability.records import Corpus, Document, InputError, Topic

from .conftest import ROOT, SHARED, SMALL

SMALL_RUN = {"config_file": "configs/smoke.yaml", "n_resamples": 200, "folds": 2}
FREE = tuple(rule for rule in real_data.RULES if "stance" not in rule)
SAID = {
    "q1": ("honey", "Honey is unsafe for infants.", "Honey is safe for infants.", "no"),
    "q2": ("zinc", "Zinc shortens a cold by a day.", "Zinc never shortens a cold.", "yes"),
}


def documents_of(qid):
    """Two true pages, one on a real host, one of low tier; and a false one."""
    word, true, false, _ = SAID[qid]
    page = {"source": "www.cdc.gov", "url": f"https://www.cdc.gov/{word}", "verified": True}
    return (
        Document(f"{word}-cdc", word, true, "government", **page),
        Document(f"{word}-blog", word, f"I read it again: {true}", "blog"),
        Document(f"{word}-bad", word, false, "ai_generated", adversarial=True),
        Document(f"{word}-far", "bread", f"Bake it at 220 degrees, {word} or not.", "government"),
    )


def small_corpus():
    topics = tuple(
        Topic(qid, f"Is {word} any good?", stance=stance)
        for qid, (word, *_, stance) in SAID.items()
    )
    other = Topic("q3", "A question of another split?")
    documents = tuple(d for qid in SAID for d in documents_of(qid))
    # The wrong page on zinc is judged for no topic, as in sets that do not say which it answers.
    qrels = {
        "q1": {"honey-cdc": 2, "honey-blog": 1, "honey-bad": 0},
        "q2": {"zinc-cdc": 2, "zinc-blog": 1},
    }
    return Corpus("small", documents, (*topics, other), qrels)


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def out_of_the_cache(tmp_path_factory):
    """Artefacts of earlier test runs must not be reused; converted models may be."""
    cache, models = tmp_path_factory.mktemp("cache"), cache_root() / "models"
    models.mkdir(parents=True, exist_ok=True)
    (cache / "models").symlink_to(models)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setenv("RAG_RELIABILITY_CACHE", str(cache))
        yield


@pytest.fixture(scope="module")
def bed(tmp_path_factory, out_of_the_cache):
    """The small corpus as a study, ranked by systems and rules."""
    folder = tmp_path_factory.mktemp("small")
    write_beir(small_corpus(), folder / "bed")
    bed = bed_of(folder, folder / "bed", k=2, max_new_tokens=12)
    real_data.retrieval_stage(bed, 1)
    return bed


def bed_of(folder, testbed, **more):
    given = {**SMALL_RUN, "out": str(folder / "run"), "testbed": str(testbed), **more}
    return real_data.open_bed(open_study({**given, "generator": SMALL, "answer_topics": 1}))


# ---- without a corpus ------------------------------------------------------------------------


@pytest.mark.parametrize("testbed", [None, "no/such/folder"])
def test_without_a_folder_one_line_says_how_to_get_one(testbed, tmp_path):
    said = []
    study = open_study({"out": str(tmp_path), "testbed": testbed})
    study.store.say = said.append
    assert real_data.open_bed(study) is None
    assert len(said) == 1 and "\n" not in said[0]
    assert "rag-reliability testbed liveqa-flipped --shared" in said[0]
    assert (testbed or "") in said[0]


def test_the_notebook_goes_on_without_a_folder(tmp_path):
    source, target = ROOT / "notebooks" / "10_real_data.ipynb", tmp_path / "10.ipynb"
    given = {"config_file": "configs/smoke.yaml", "out": str(tmp_path / "run")}
    runner.execute(source, target, given, ROOT)
    cells = [c for c in nbformat.read(target, as_version=4).cells if c.cell_type == "code"]
    said = [o["text"] for cell in cells for o in cell.outputs if o.output_type == "stream"]
    assert "rag-reliability testbed" in "".join(said)
    shown = [o for cell in cells for o in cell.outputs if o.output_type == "execute_result"]
    assert len(shown) == 1  # the config


def test_it_is_part_of_a_whole_run():
    assert "10_real_data" in runner.NOTEBOOKS


# ---- topics ----------------------------------------------------------------------------------


def test_more_topics_keep_the_fewer_and_bad_numbers_are_refused(bed):
    one, all_of_them = real_data.answered_topics(bed, 1), real_data.answered_topics(bed, 9)
    assert len(one) == 1 and set(one) <= set(all_of_them)
    assert all_of_them == ("q1", "q2")  # q3 is not judged
    with pytest.raises(InputError, match="answer_topics = 0"):
        real_data.answered_topics(bed, 0)


# ---- rankings --------------------------------------------------------------------------------


def test_every_system_and_rule_is_scored_on_the_judged_topics(bed):
    frame = pd.read_csv(bed.run_dir / real_data.METRICS)
    assert list(frame.columns) == ["system", "qid", "metric", "value"]
    assert {*FREE, real_data.BY_HOST, "similarity", "source_aware"} <= set(frame["system"])
    assert set(frame["qid"]) == {"q1", "q2"}
    assert not frame["value"].isna().any()
    assert not frame.duplicated(["system", "qid", "metric"]).any()


def test_a_wrong_page_counts_though_it_is_judged_for_no_topic(bed):
    frame = pd.read_csv(bed.run_dir / real_data.METRICS)
    frame = frame.set_index(["system", "metric", "qid"]).sort_index()
    runs = real_data.read_runs(bed.run_dir)
    for rule in FREE:
        for qid in ("q1", "q2"):
            bad = sum(docno.endswith("-bad") for docno in runs[rule][qid][:2]) / 2
            assert frame.loc[(rule, "adv_share@2", qid), "value"] == bad
    assert frame.loc[("similarity", "adv_share@2")]["value"].sum() > 0


def test_a_page_is_verified_by_its_host_and_not_by_what_the_corpus_says(bed):
    marked = [d.docno for d in bed.corpus.documents if d.verified]
    found = bed.corpus.docnos[real_hosts.statuses(bed) == "verified"].tolist()
    assert found == marked == ["honey-cdc", "zinc-cdc"]
    runs = real_data.read_runs(bed.run_dir)
    assert runs[real_data.BY_HOST] == runs["verified_floor"]
    table = real_hosts.publishers_table(bed).set_index("publisher")
    row = table.loc["Centers for Disease Control and Prevention"]
    assert (row["documents"], row["relevant"], row["verified"], row["prior"]) == (2, 2, 2, "0.9")
    assert table.loc[real_hosts.NOBODY, "adversarial"] == 2


def test_on_one_tier_a_prior_is_a_constant(bed):
    table = real_hosts.prior_effect_table(bed).set_index("corpus")
    one_tier = table.loc["only pages whose host the registry verifies"]
    assert (one_tier["documents"], one_tier["priors"], one_tier["changed"]) == (2, 1, 0)
    assert table.loc["every document", "changed"] == 2


def test_what_a_corpus_lacks_is_said_and_not_made_up(bed, tmp_path):
    assert real_views.undefined(bed, 2)["measure"].tolist() == ["correctness, harm"]
    topics = tuple(replace(t, stance=None) for t in bed.corpus.topics)
    honest = tuple(replace(d, adversarial=False) for d in bed.corpus.documents)
    write_beir(replace(bed.corpus, topics=topics, documents=honest), tmp_path / "plain")
    missing = real_views.undefined(bed_of(tmp_path, tmp_path / "plain"), 2)["measure"]
    assert missing.tolist() == [
        "correctness, harm",
        "stance error, shift toward the truth",
        "adversarial share, uptake",
    ]


# ---- answers ---------------------------------------------------------------------------------


def test_answers_are_from_the_passages_ranked_first(bed):
    real_answers.real_answers_stage(bed, 1)
    (qid,) = real_data.answered_topics(bed, 1)
    runs = real_data.read_runs(bed.run_dir)
    answers = {a.system: a for a in real_answers.real_answers(bed)}
    assert list(answers) == ["no_passages", *real_answers.ANSWERED]
    assert all(a.qid == qid and a.text.strip() for a in answers.values())
    for rule in ("verified_collapse", "stance_consistent"):
        assert answers[rule].docnos == tuple(runs[rule][qid][:2])
    table = real_views.answers_table(bed)
    assert "Grounding ↑" in table and "Adversarial uptake ↓" in table
    assert "Harm ↓" not in table and "Correctness ↑" not in table
    assert "Verified collapse" in set(table["System"])
    stance = pd.read_csv(bed.run_dir / real_answers.STANCE)
    assert set(stance["metric"]) == {"log_odds", "stance_shift", "stance_error"}
    assert len(real_views.stance_view(bed)) == len(answers)


def test_tables_and_figure_show_what_was_saved(bed):
    whole, few = real_views.ranking_table(bed), real_views.ranking_table(bed, 1)
    assert "Stance-consistent" in set(few["System"]) - set(whole["System"])
    assert "Verified by host" in set(whole["System"])
    assert len(real_views.difference_table(bed)) > len(whole)
    assert len(real_views.topics_figure(bed, 1).axes) == 2
    costs = real_views.cost_view(bed)
    assert set(costs["rule"]) == {"Stance-consistent", "Stance × verified"}
    assert (costs["calls"] == 9).all()  # eight pages, and the question alone


# ---- LiveQA-Med ------------------------------------------------------------------------------


@pytest.mark.skipif(not SHARED.is_dir(), reason="the public sets are not beside the repository")
def test_liveqa_without_what_was_added_is_one_tier(tmp_path, out_of_the_cache):
    write_testbed("liveqa-flipped", SHARED, tmp_path / "whole", seed=0)
    whole = read_corpus(tmp_path / "whole")
    qids = [q for q, labels in whole.qrels.items() if sum(map(bool, labels.values())) >= 2][:2]
    judged = {docno for qid in qids for docno in whole.qrels[qid]}
    cut = replace(
        whole,
        documents=tuple(
            replace(d, text=d.text[:200]) for d in whole.documents if d.docno in judged
        ),
        topics=tuple(t for t in whole.topics if t.qid in qids),
        qrels={qid: whole.qrels[qid] for qid in qids},
    )
    write_beir(cut, tmp_path / "bed")
    bed = bed_of(tmp_path, tmp_path / "bed")
    table = real_hosts.prior_effect_table(bed).set_index("corpus")
    one_tier = table.loc["only pages whose host the registry verifies"]
    assert one_tier["documents"] > 0
    assert (one_tier["priors"], one_tier["changed"]) == (1, 0)
    added = bed.corpus.adversarial
    assert added.any() and not (real_hosts.statuses(bed)[added] == "verified").any()
    counts = real_views.facts(bed).set_index("what")["n"]
    assert counts["adversarial documents"] == added.sum()
    assert counts["of these with a known stance"] == counts["of these with pairs of claims"] == 0
