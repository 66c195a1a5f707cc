"""The measured table comes back from the data, and hosts become types by whole labels only."""

from __future__ import annotations

import json
import sys

import pytest

from rag_reliability.reliability.priors import load_priors

from .conftest import ROOT, SHARED

sys.path.insert(0, str(ROOT / "benchmarks"))

from expertqa_hosts import host_of, type_of
from expertqa_priors import CODINGS, judged_hosts, render


@pytest.mark.parametrize(
    ("evidence", "host"),
    [
        ("[1] https://www.nice.org.uk/guidance/ng1\n\nSome passage.", "nice.org.uk"),
        ("http://EN.wikipedia.org/wiki/Rain", "en.wikipedia.org"),
        ("[3] not an address", None),
        ("[2] https://[broken", None),
        ("", None),
    ],
)
def test_host_of_evidence(evidence, host):
    assert host_of(evidence) == host


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("pubmed.ncbi.nlm.nih.gov", "peer_reviewed"),
        ("cdc.gov", "government"),
        ("assets.publishing.service.gov.uk", "government"),
        ("news.d.umn.edu", "university"),
        ("strath.ac.uk", "university"),
        ("littlecatholicbubble.blogspot.com", "blog"),
        ("en.wikipedia.org", "user_generated"),
        ("governance.example", "other_web"),
        ("cdc.gov.example.com", "government"),  # a label anywhere counts: no defence against lies
        ("notnature.com", "other_web"),
    ],
)
def test_type_of_host(host, kind):
    assert type_of(host) == kind


def test_a_question_counts_a_host_once_and_several_hosts_not_at_all(tmp_path):
    def claim(reliability, *evidence):
        return {"reliability": reliability, "evidence": list(evidence)}

    a, b = "[1] https://a.example/x\n\ntext", "[2] https://www.b.example/y"
    claims = [
        claim("Reliable", a),
        claim("Not reliable at all", a),
        claim("Somewhat reliable", b),
        claim("Reliable", a, b),
        claim("Missing", a),
        claim("Reliable"),
    ]
    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps({"answers": {"one": {"claims": claims}}}) + "\n")
    assert judged_hosts(path, CODINGS["expertqa"]) == (["a.example", "b.example"], [0.5, 0.5], 1)
    assert judged_hosts(path, CODINGS["expertqa_lenient"])[1] == [0.5, 1.0]


def test_the_committed_table_comes_back_from_the_data():
    data = SHARED / "expertqa" / "dev.jsonl"
    if not data.is_file():
        pytest.skip(f"{data} is not here: the public ExpertQA data to measure with")
    hand = load_priors(ROOT / "configs" / "priors.yaml").spreads
    made = render(data, hand)
    assert made == (ROOT / "configs" / "priors-expertqa.yaml").read_text(encoding="utf-8")
