from __future__ import annotations

import base64
import dataclasses
import json
import socket
import unicodedata

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from rag_reliability.records import Corpus, Document, InputError
from rag_reliability.reliability import hosts
from rag_reliability.reliability.hosts import doi_prefix, host_of, registrable_domain
from rag_reliability.reliability.priors import load_priors
from rag_reliability.reliability.provenance import (
    check_corpus,
    check_document,
    with_verification,
)
from rag_reliability.reliability.registry import Publisher, Registry, load_registry
from rag_reliability.reliability.signatures import (
    canonical_bytes,
    is_signed,
    load_signatures,
    sign_document,
)
from rag_reliability.reliability.threats import impersonate, spoof_labels

from .conftest import ROOT

SECRET = bytes(range(32))
PUBLIC = (
    Ed25519PrivateKey.from_private_bytes(SECRET)
    .public_key()
    .public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
)
REGISTRY = Registry(
    (
        Publisher(
            "National Institutes of Health",
            ("government",),
            names=("nih",),
            hosts=("nih.gov",),
            keys=(PUBLIC,),
        ),
        Publisher("Archive", ("peer_reviewed",), hosts=("pmc.ncbi.nlm.nih.gov",)),
        Publisher("NEJM", ("peer_reviewed",), hosts=("nejm.org",), doi_prefixes=("10.1056",)),
        Publisher(
            "Lancet", ("peer_reviewed",), hosts=("thelancet.com",), doi_prefixes=("10.1016",)
        ),
        Publisher("Elsevier", ("peer_reviewed",), doi_prefixes=("10.1016",)),
        Publisher("Forum", ("user_generated",), hosts=("forum.example",)),
    )
)


def document(url="", source_type="government", source="", text="text"):
    return Document("d", "title", text, source_type, source=source, url=url, date="2020-01-01")


def status(url="", source_type="government", source=""):
    return check_document(document(url, source_type, source), REGISTRY).status


# ---- hosts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://nih.gov",
        "https://www.nih.gov/health?q=1#top",
        "HTTP://WWW.NIH.GOV:80/",
        "https://nih.gov./x",
        "https://nih.gov:8443/",
        "https://a.b.c.nih.gov/",
        "https://ｎｉｈ.gov/",  # full width: browsers go to nih.gov too
        "https://nih.gov/https://evil.example/",
    ],
)
def test_hosts_of_a_registered_domain(url):
    assert status(url) == "verified"


@pytest.mark.parametrize(
    "url",
    [
        "https://nih.gov.evil.example/",
        "https://evil.example/nih.gov",
        "https://evil.example?nih.gov",
        "https://evil.example#@nih.gov/",
        "https://nih.gov@evil.example/",
        "https://nih.gov:x@evil.example/",
        "https://nih.gov:443@evil.example:443/",
        "https://evil.example\\@nih.gov/",
        "https://evil.example\\.nih.gov/",
        "https://user@nih.gov/",  # leads to nih.gov, but no publisher writes this
        "https://evilnih.gov/",
        "https://nih.gov-portal.example/",
        "https://nih-gov.example/",
        "https://nih.gov..",
        "https://.nih.gov",
        "https://nih.com/",
        "https://nih.gov.uk/",
        "https://nіh.gov/",  # Cyrillic і
        "https://xn--nh-hoc.gov/",
        "https://nih.gov%2eevil.example/",
        "https://nih.gov%00.evil.example/",
        "https://nih.gov\n.evil.example/",
        "https://nih.gov\t.evil.example/",
        "https://nih.gov:99999/",
        "https://nih.gov:port/",
        "https://[::ffff:1.2.3.4]/",
        "https://1.2.3.4/",
        "https://gov/",
        "https:///nih.gov",
        "//nih.gov/",
        "nih.gov",
        "ftp://nih.gov/",
        "javascript://nih.gov/%0aalert(1)",
        "data:text/html,https://nih.gov/",
        "https://",
        "",
    ],
)
def test_hosts_that_only_look_like_it(url):
    assert status(url) == "unverified"
    # Who claims to be the registered publisher on another host is contradicted, never verified.
    assert status(url, source="NIH") in ("unverified", "contradicted")


@given(
    st.text("abcdefghijklmnopqrstuvwxyz0123456789-.@:/\\?#%іо。 \t", max_size=20),
    st.sampled_from(["{}nih.gov", "nih.gov{}", "nih{}gov", "{}nih.gov/x", "nih.gov{}.example"]),
)
def test_whatever_is_verified_is_at_or_below_the_registered_domain(noise, form):
    url = "https://" + form.format(noise)
    if status(url) == "verified":
        host = host_of(url.strip())  # as pasted
        assert host == "nih.gov" or host.endswith(".nih.gov")
        assert registrable_domain(host) == "nih.gov"


def test_the_nearest_entry_owns_a_host():
    url = "https://pmc.ncbi.nlm.nih.gov/articles/PMC1/"
    assert status(url, "peer_reviewed") == "verified"
    assert status(url, "government") == "contradicted"
    assert status("https://ncbi.nlm.nih.gov/", "government") == "verified"


def test_registrable_domains_by_the_public_suffix_list():
    assert registrable_domain("a.b.co.uk") == "b.co.uk"
    assert registrable_domain("co.uk") is None
    assert registrable_domain("me.github.io") == "me.github.io"  # shared hosting: somebody else
    assert registrable_domain("x.pages.example") == "pages.example"


def test_nothing_is_fetched(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    hosts._extractor.cache_clear()
    assert registrable_domain("www.nih.gov") == "nih.gov"
    assert hosts._extractor().suffix_list_urls == ()


# ---- declared type and source --------------------------------------------------------------


def test_a_type_that_the_publisher_does_not_publish_is_contradicted():
    check = check_document(document("https://forum.example/1", "government"), REGISTRY)
    assert (check.status, check.method) == ("contradicted", "host")
    assert "Forum" in check.reason and "government" in check.reason
    assert status("https://forum.example/1", "user_generated") == "verified"


@pytest.mark.parametrize(
    ("source", "url", "expected"),
    [
        ("NIH", "https://www.nih.gov/", "verified"),
        ("  national  INSTITUTES of health ", "https://www.nih.gov/", "verified"),
        ("www.nih.gov", "https://nlm.nih.gov/", "verified"),
        ("A name nobody registered", "https://nih.gov/", "verified"),
        ("NIH", "https://nih.gov.evil.example/", "contradicted"),
        ("NIH", "https://forum.example/", "contradicted"),
        ("nejm.org", "https://nih.gov/", "contradicted"),
        ("other.example", "https://nih.gov/", "contradicted"),
        ("NIH", "", "unverified"),
        ("Elsevier", "https://unknown.example/", "unverified"),  # no hosts of Elsevier's known
    ],
)
def test_a_declared_source_against_its_host(source, url, expected):
    assert status(url, "government", source) == expected


@pytest.mark.parametrize(
    ("url", "source", "kind", "expected"),
    [
        ("https://doi.org/10.1056/NEJMoa1", "NEJM", "peer_reviewed", "verified"),
        ("https://dx.doi.org/10.1056%2FNEJMoa1", "", "peer_reviewed", "verified"),
        ("doi:10.1056/NEJMoa1", "", "peer_reviewed", "verified"),
        ("doi:10.1016/j.x", "Lancet", "peer_reviewed", "verified"),  # a shared prefix
        ("doi:10.1016/j.x", "Elsevier", "peer_reviewed", "verified"),
        ("doi:10.1016/j.x", "NEJM", "peer_reviewed", "contradicted"),
        ("doi:10.1056/NEJMoa1", "", "government", "contradicted"),
        ("doi:10.10567/x", "", "peer_reviewed", "unverified"),
        ("doi:10.9999/x", "NEJM", "peer_reviewed", "contradicted"),
        ("doi:10.9999/x", "NIH", "government", "unverified"),  # none of NIH's prefixes is known
        ("https://doi.org/10.1056/", "", "peer_reviewed", "unverified"),
        ("https://doi.org.evil.example/10.1056/x", "", "peer_reviewed", "unverified"),
        ("https://evil.example/doi/10.1056/x", "", "peer_reviewed", "unverified"),
        ("https://evil.example@doi.org/10.1056/x", "", "peer_reviewed", "unverified"),
    ],
)
def test_doi_prefixes(url, source, kind, expected):
    assert status(url, kind, source) == expected


def test_dois_and_hosts_within_the_text_count_for_nothing():
    copied = document(source_type="peer_reviewed", text="doi:10.1056/NEJMoa1 https://nejm.org/")
    assert check_document(copied, REGISTRY).status == "unverified"
    assert doi_prefix("see doi:10.1056/x") is None


# ---- signatures ----------------------------------------------------------------------------


def test_canonical_bytes_are_as_documented():
    got = canonical_bytes(Document("n", "é", 'a "b"\n', "blog", source="s", url="u", date="d"))
    assert got == (
        b"rag-reliability document 1\n"
        b'{"date":"d","source":"s","source_type":"blog","text":"a \\"b\\"\\n",'
        b'"title":"\\u00e9","url":"u"}'
    )


@given(st.text(max_size=40), st.text(max_size=20))
def test_canonical_bytes_ignore_composition_and_our_own_marks_only(text, title):
    one = dataclasses.replace(document(text=text), title=title)
    decomposed = dataclasses.replace(one, text=unicodedata.normalize("NFD", text))
    marked = dataclasses.replace(
        one, docno="x", verified=True, adversarial=True, claims=("c:gold",)
    )
    assert canonical_bytes(one) == canonical_bytes(decomposed) == canonical_bytes(marked)
    # Text cannot move between fields unseen.
    moved = dataclasses.replace(one, text=title + text, title="")
    assert (canonical_bytes(moved) == canonical_bytes(one)) == (not title)


def test_a_signature_verifies_without_any_url():
    signed = document(source="NIH")
    check = check_document(signed, REGISTRY, sign_document(signed, SECRET))
    assert (check.status, check.method) == ("verified", "signature")


@pytest.mark.parametrize("name", ["title", "text", "source", "url", "date", "source_type"])
def test_every_signed_field_counts(name):
    signed = document(source="NIH")
    signature = sign_document(signed, SECRET)
    changed = dataclasses.replace(signed, **{name: getattr(signed, name) + "x"})
    assert not is_signed(changed, signature, PUBLIC)


def test_a_broken_signature_outweighs_a_good_host():
    signed = document("https://www.nih.gov/", source="NIH")
    signature = sign_document(signed, SECRET)
    altered = dataclasses.replace(signed, text="the opposite")
    assert check_document(altered, REGISTRY).status == "verified"
    check = check_document(altered, REGISTRY, signature)
    assert (check.status, check.method) == ("contradicted", "signature")


def test_signing_for_another_publisher_or_type_is_contradicted():
    for lie in (document(source="NEJM"), document(source="NIH", source_type="peer_reviewed")):
        check = check_document(lie, REGISTRY, sign_document(lie, SECRET))
        assert (check.status, check.method) == ("contradicted", "signature")


@pytest.mark.parametrize("signature", ["", "nonsense!", "AAAA", "A" * 88, "é"])
def test_malformed_signatures_verify_nothing(signature):
    stranger = document(source="Nobody")
    assert check_document(stranger, REGISTRY, signature).status == "unverified"
    assert check_document(document(source="NIH"), REGISTRY, signature).status == "contradicted"


def test_an_unregistered_key_verifies_nothing():
    stranger = document(source="Nobody")
    signature = sign_document(stranger, bytes(32))
    assert check_document(stranger, REGISTRY, signature).status == "unverified"
    with pytest.raises(InputError, match="private key has 3 bytes"):
        sign_document(stranger, b"abc")


def test_signatures_from_a_file(tmp_path):
    path = tmp_path / "signatures.json"
    path.write_text(json.dumps({"d": "AAAA"}))
    assert load_signatures(path) == {"d": "AAAA"}
    for bad in ("[", "[]", '{"d": 1}'):
        path.write_text(bad)
        with pytest.raises(InputError, match=r"signatures\.json"):
            load_signatures(path)


# ---- corpora -------------------------------------------------------------------------------


def test_a_corpus_is_checked_in_order_and_not_changed():
    signed = dataclasses.replace(document(source="NIH"), docno="s")
    good, bad = (
        document("https://nih.gov/"),
        dataclasses.replace(document(), docno="b", verified=True),
    )
    corpus = Corpus("c", (good, bad, signed))
    signatures = {"s": sign_document(signed, SECRET)}
    checks = check_corpus(corpus, REGISTRY, signatures)
    assert [c.status for c in checks] == ["verified", "unverified", "verified"]
    after = with_verification(corpus, REGISTRY, signatures)
    assert [d.verified for d in after.documents] == [True, False, True]
    assert corpus.documents[1].verified
    assert with_verification(after, REGISTRY, signatures) == after
    with pytest.raises(InputError, match="'gone'"):
        check_corpus(corpus, REGISTRY, {"gone": ""})


def test_the_shipped_registry_finds_what_health120_calls_verified(health120):
    known = load_priors(ROOT / "configs" / "priors.yaml").known_types
    registry = load_registry(ROOT / "configs" / "registry.yaml", known)
    found = [c.status for c in check_corpus(health120, registry)]
    assert [s == "verified" for s in found] == [d.verified for d in health120.documents]
    assert "contradicted" not in found


@pytest.mark.parametrize(
    ("attack", "expected"), [(spoof_labels, "unverified"), (impersonate, "contradicted")]
)
def test_lies_about_the_source_are_not_verified(health120, attack, expected):
    registry = load_registry(ROOT / "configs" / "registry.yaml")
    lying = attack(health120, 1.0, seed=3)
    checks = check_corpus(lying, registry)
    assert {c.status for c, bad in zip(checks, lying.adversarial, strict=True) if bad} == {expected}


# ---- the registry's file -------------------------------------------------------------------


def registry_of(tmp_path, body):
    path = tmp_path / "registry.yaml"
    path.write_text("publishers:\n" + body, encoding="utf-8")
    return load_registry(path, ["blog", "government"])


def test_a_registry_as_users_write_it(tmp_path):
    key = base64.b64encode(PUBLIC).decode()
    body = (
        f"  Köln:\n    types: [blog]\n    names: [K]\n    hosts: [WWW.Köln.de, a.example]\n"
        f"    doi_prefixes: [10.1100]\n    keys: [{key}]\n"
    )
    (publisher,) = registry_of(tmp_path, body).publishers
    # An unquoted prefix stays as written: as a number 10.1100 would be 10.11.
    assert publisher == Publisher(
        "Köln", ("blog",), ("k",), ("www.xn--kln-sna.de", "a.example"), ("10.1100",), (PUBLIC,)
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  A: {hosts: [nih.gov]}\n", r"yaml:2: publisher 'A': expected 'types'"),
        ("  A: {types: []}\n", r"yaml:2: publisher 'A': expected 'types'"),
        ("  A:\n    types: [blgo]\n", r"yaml:3: publisher 'A': unknown source type 'blgo'; known"),
        ("  A:\n    types: blog\n", r"yaml:3: publisher 'A': expected 'types' to hold a list"),
        ("  A:\n    types: [blog]\n    host: [a.b]\n", r"yaml:4: .*unknown key 'host'"),
        ("  A:\n    types: [blog]\n    hosts: [gov]\n", r"yaml:4: publisher 'A', 'hosts': 'gov'"),
        ("  A:\n    types: [blog]\n    hosts: [co.uk]\n", r"'hosts': 'co.uk'; expected a host"),
        ("  A:\n    types: [blog]\n    hosts: [github.io]\n", r"'github.io'; expected a host"),
        ("  A:\n    types: [blog]\n    hosts: ['https://nih.gov']\n", r"'https://nih.gov'; exp"),
        ("  A:\n    types: [blog]\n    hosts: [10.0.0.1]\n", r"'10.0.0.1'; expected a host"),
        ("  A:\n    types: [blog]\n    hosts: [[a]]\n", r"'a list or mapping'; expected a host"),
        ("  A:\n    types: [blog]\n    doi_prefixes: [11.1]\n", r"'11.1'; expected a DOI prefix"),
        ("  A:\n    types: [blog]\n    keys: [AAAA]\n", r"'AAAA'; expected an Ed25519 public key"),
        (f"  A:\n    types: [blog]\n    keys: [{'A' * 43}=]\n", r"expected an Ed25519 public key"),
        ("  A: {types: [blog]}\n  A: {types: [blog]}\n", r"yaml:3: 'A' stands twice"),
        ("  A: {types: [blog]}\n  a: {types: [blog]}\n", r"yaml:3: 'a' of 'a' already belongs"),
        (
            "  A:\n    types: [blog]\n    hosts: [x.example]\n"
            "  B:\n    types: [blog]\n    hosts: [x.example]\n",
            r"yaml:7: 'x.example' of 'B' already belongs to 'A'",
        ),
        ("  A: 3\n", r"yaml:2: expected publisher 'A' to hold key: value pairs"),
        ("  []\n", r"yaml:2: expected 'publishers' to hold key: value pairs"),
    ],
)
def test_errors_name_file_line_and_key(tmp_path, body, message):
    with pytest.raises(InputError, match=message):
        registry_of(tmp_path, body)


@pytest.mark.parametrize("body", ["", "x: 1\n", "publishers: {}\nmore: {}\n", "a: [", "\x00"])
def test_files_that_are_no_registry(tmp_path, body):
    path = tmp_path / "registry.yaml"
    path.write_text(body)
    with pytest.raises(InputError, match=r"registry\.yaml"):
        load_registry(path)
    with pytest.raises(InputError, match="nowhere"):
        load_registry(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "url",
    [
        "https://doi.org/10.1056/../10.9999/evil",
        "https://doi.org/10.1056/%2e%2e/10.9999/evil",
        "doi:10.1056/../10.9999/evil",
        "doi:10.1056/%2E%2E/10.9999/evil",
        "doi:10.1056/x y z",
        "https://dx.doi.org:8080/10.1056/x",
    ],
)
def test_an_address_that_walks_to_another_name_names_no_doi(url):
    assert doi_prefix(url) is None


def test_a_plain_doi_names_its_registrant():
    assert doi_prefix("https://doi.org/10.1056/NEJMoa2034577") == "10.1056"
    assert doi_prefix("doi:10.1056/a.b..c/d") == "10.1056"
