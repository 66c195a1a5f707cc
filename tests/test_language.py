"""Languages and taxonomies are data: English is what it was, others are their own file's."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from urllib.parse import urlsplit

import numpy as np
import pytest
import yaml

from rag_reliability.datasets.check import summarise
from rag_reliability.datasets.read import read_corpus
from rag_reliability.evaluation.alignment import content_recall
from rag_reliability.evaluation.contrast import polarity
from rag_reliability.evaluation.flags import flags
from rag_reliability.evaluation.refusals import abstains, answer_sentences
from rag_reliability.evaluation.signals import mark_tokens
from rag_reliability.experiment.drawing import own_tiers
from rag_reliability.experiment.ranking import (
    System,
    load_candidates,
    low_tier,
    ranked,
    similarity_system,
    type_prior,
)
from rag_reliability.experiment.stances import EntailmentStance, GeneratorStance
from rag_reliability.experiment.study import open_study
from rag_reliability.generation.claims import claim_messages
from rag_reliability.generation.models import load_generator
from rag_reliability.generation.prompt import ARMS, Passage, build_messages, prompt_ids
from rag_reliability.generation.reading import reading_messages
from rag_reliability.generation.stance import stance_messages, yes_no_spellings
from rag_reliability.language import Words, english, load_language
from rag_reliability.records import InputError
from rag_reliability.reliability.priors import load_priors
from rag_reliability.reliability.taxonomy import load_taxonomy
from rag_reliability.reporting.style import tier_label, tier_look, tier_order
from rag_reliability.text import is_yes_no

from .conftest import ROOT, SMALL

LANGUAGES = ROOT / "configs" / "languages.yaml"
HOGAR = ROOT / "corpus" / "hogar48"
# Of the prompts as they were before they became data: messages, and token ids of the 0.5 B model.
MESSAGES = "524d16d53775986f1f1eb16e4a61d1f30bdedae5ff8fb22aa890d729aefba76a"
TOKEN_IDS = "a4db7824a1e91e73d0ae2a21e00586c6e4b5d8560dae585be72b717814565e4b"


@pytest.fixture(scope="module")
def spanish():
    return load_language(LANGUAGES, "es")


@pytest.fixture
def hogar(tmp_path):
    return open_study({"config_file": "configs/es.yaml", "out": str(tmp_path / "run")})


def english_prompts(corpus) -> list:
    found = []
    for topic in corpus.topics:
        judged = [d for d in corpus.documents if d.docno in corpus.qrels[topic.qid]]
        passages = [Passage(d.content, d.source_type) for d in judged]
        for arm in sorted(ARMS):
            found += [build_messages(topic.query, passages[:k], arm) for k in (0, 1, 5, 12)]
        found += [stance_messages(topic.query, passages[:k]) for k in (0, 1, 5)]
        for text in ("", passages[0].text):
            found += reading_messages(topic.query, text)
            found.append(claim_messages(topic.claims[0].gold, text))
    unknown = [Passage("x", "forum_post"), Passage("y", "")]
    return [*found, build_messages("q", unknown, "credibility_in_prompt")]


def digest(value) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def test_english_prompts_are_byte_for_byte_what_was_measured(health120):
    prompts = english_prompts(health120)
    assert (len(prompts), digest(prompts)) == (171, MESSAGES)
    generator = load_generator(SMALL)
    assert digest([prompt_ids(generator, p) for p in prompts]) == TOKEN_IDS


def test_a_study_without_a_language_speaks_that_english(tmp_path):
    study = open_study({"config_file": "configs/paper.yaml", "out": str(tmp_path / "run")})
    assert study.language == english()
    assert study.taxonomy.trusted == ("peer_reviewed", "government")
    assert (study.taxonomy.reference, study.taxonomy.low_at) == ("current", 0.5)
    assert GeneratorStance(SMALL, study.language).key == GeneratorStance(SMALL).key


def test_spanish_prompts_hold_no_english(hogar):
    passages = [Passage("Hola.", "foro"), Passage("Adiós.", "laboratorio"), Passage("Ay.", "")]
    system, user = build_messages("¿Qué?", passages, "credibility_in_prompt", hogar.language)
    assert system["content"] == (
        "Respondes preguntas con los pasajes que se te dan. Sus fuentes no son igual de fiables: "
        "da más crédito a los laboratorios y los organismos públicos que a las tiendas y los foros."
    )
    shown = user["content"].split("\n\n")
    assert shown[:4] == [
        "[1] Hola. (Fuente: mensaje de un foro)",
        "[2] Adiós. (Fuente: laboratorio de ensayos)",
        "[3] Ay. (Fuente: desconocida)",
        "Pregunta: ¿Qué?",
    ]
    chats = [
        build_messages("¿Qué?", (), "plain", hogar.language),
        stance_messages("¿Sí?", passages, hogar.language),
        *reading_messages("¿Sí?", "Hola.", hogar.language),
    ]
    said = " ".join(m["content"] for chat in chats for m in chat)
    assert not re.search(r"\b(?:You|Yes|Answer|Question|Passage|According|the)\b", said)
    assert [c[1]["content"].rsplit("? ")[1] for c in chats[2:]] == [
        *("Responde Sí o No.", "Responde No o Sí.")
    ]


def test_spanish_yes_and_no_are_tokens_of_the_small_model(spanish):
    generator = load_generator(SMALL)
    yes, no = yes_no_spellings(generator, spanish)
    assert generator.tokenizer.decode([yes[0]]).strip() in ("Sí", "sí", "Si")
    assert yes and no and not set(yes) & set(no)
    assert set(yes) != set(yes_no_spellings(generator)[0])


def test_readings_in_another_language_are_kept_apart(spanish):
    assert GeneratorStance(SMALL, spanish).key not in (
        GeneratorStance(SMALL).key,
        GeneratorStance(SMALL, english()).key,
    )
    assert EntailmentStance("x", spanish).language == spanish


# ---- word lists --------------------------------------------------------------------------------


def test_spanish_word_lists_do_what_the_english_ones_do(spanish):
    words = spanish.words
    assert abstains("No puedo responder con los pasajes.", words)
    assert abstains("Los pasajes no mencionan la temperatura. No hay información.", words)
    assert not abstains("No conviene. El ciclo corto gasta más.", words)
    assert not abstains("No puedo responder con los pasajes.")  # English reads no Spanish
    assert polarity("Es un mito.", words) == polarity("No gasta.", words) == -1
    assert polarity("Gasta mucho.", words) == 1
    # gasta and vatios of three content words: la, de and los carry none
    assert content_recall("La nevera gasta vatios", "gasta de los vatios", words) == 2 / 3
    assert flags("Gasta 2,5 vatios", "Gasta 2,50 vatios", None, words) == ()
    assert flags("Gasta 1.000 vatios", "Gasta 1 vatio", None, words) == ("number: 1000",)
    assert flags("No gasta nada de luz", "Gasta luz", None, words) == ("negation",)
    marks = mark_tokens(["no", "gast", "##a", "la", "luz"], words)
    assert marks.negation.tolist() == [True, False, False, False, False]
    assert marks.content.tolist() == [True, True, False, False, True]


def test_lists_that_are_missing_switch_off_what_needs_them():
    bare = Words(splitter="fr")
    assert not abstains("Je ne peux pas répondre.", bare) and abstains("", bare)
    assert polarity("Ce n'est pas vrai, not at all.", bare) == 1
    assert flags("Il ne faut pas", "Il faut", None, bare) == ()
    assert not mark_tokens(["not", "no"], bare).negation.any()
    assert content_recall("le the chat", "le the", bare) == 2 / 3
    assert not is_yes_no("Is it so?", bare)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("¿Gastan electricidad los aparatos en modo de espera?", True),
        ("Es seguro?", True),
        ("¿Qué programa gasta menos?", False),
        ("¿A qué temperatura conviene ajustarlo?", False),
        ("Tengo dudas. ¿Cuánto gasta?", False),
        ("Tengo dudas. ¿Gasta mucho?", True),
        ("", False),
    ],
)
def test_spanish_yes_no_questions(spanish, question, expected):
    assert is_yes_no(question, spanish.words) is expected


def test_spanish_sentences(spanish):
    text = "Lo dice el Dr. Pérez [1]. ¿Es verdad? No [2]."
    assert answer_sentences(text, spanish.words) == [
        *("Lo dice el Dr. Pérez [1].", "¿Es verdad?", "No [2].")
    ]


# ---- a language of one's own -------------------------------------------------------------------


def edited(tmp_path, change):
    entries = yaml.safe_load(LANGUAGES.read_text(encoding="utf-8"))
    change(entries["languages"])
    path = tmp_path / "languages.yaml"
    path.write_text(yaml.safe_dump(entries, allow_unicode=True), encoding="utf-8")
    return path


def test_an_entry_may_change_one_line_of_another(tmp_path):
    garden = {"base": "en", "stance": {"system": "You answer questions about gardens."}}
    found = load_language(edited(tmp_path, lambda e: e.update(garden=garden)), "garden")
    assert found.stance.system == "You answer questions about gardens."
    assert found.stance.asks == english().stance.asks and found.answer == english().answer


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda e: e.pop("es"), "no language 'es'; known: en"),
        (lambda e: e["es"].pop("stance"), "language 'es': stance: "),
        (lambda e: e["es"]["stance"].update(asks=["Sí"]), "stance.asks"),
        (lambda e: e["es"]["answer"].update(colour="x"), "answer.colour"),
        (lambda e: e["es"]["answer"].update(question="¿?"), "expected {question} in it"),
        (lambda e: e["es"]["answer"].update(system="{x}"), "expected no braces"),
        (lambda e: e["es"]["answer"].update(source="{source"), "source"),
        (lambda e: e["es"]["words"].update(denial=["("]), "no regular expression"),
        (lambda e: e.update(es={"base": "fr"}), "base 'fr' is no language"),
    ],
)
def test_a_faulty_language_is_refused_in_one_line(tmp_path, change, part):
    path = edited(tmp_path, change)
    with pytest.raises(InputError) as error:
        load_language(path, "es")
    assert part in str(error.value) and str(path) in str(error.value)
    assert "\n" not in str(error.value)


# ---- a taxonomy of one's own -------------------------------------------------------------------


def test_low_and_trusted_tiers_are_the_taxonomys(hogar):
    assert hogar.taxonomy.trusted == ("laboratorio", "organismo")
    documents = hogar.corpus.documents
    expected = {d.docno for d in documents if d.source_type in ("tienda", "foro")}
    assert low_tier(hogar) == expected and len(expected) == 24


def test_figures_call_and_draw_its_types(hogar):
    with own_tiers(hogar):
        assert tier_order(["foro", "organismo", "laboratorio"]) == [
            *("laboratorio", "organismo", "foro")
        ]
        assert tier_label("organismo") == "Organismo público"
        assert tier_look("tienda", 0)[:2] == ("#E69F00", "D")
    assert tier_label("organismo") == "organismo"


def taxonomy(tmp_path, text):
    path = tmp_path / "priors.yaml"
    path.write_text(f"spreads: {{s: {{a: 0.9, b: 0.8, c: 0.7, d: 0.2}}}}\n{text}", encoding="utf-8")
    return load_taxonomy(path, load_priors(path), "s")


def test_without_a_section_the_two_best_types_are_trusted(tmp_path):
    found = taxonomy(tmp_path, "")
    assert (found.trusted, found.reference, found.low_at) == (("a", "b"), "s", 0.5)
    assert taxonomy(tmp_path, "taxonomy: {low_at: 0.85}\n").trusted == ("a",)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("taxonomy: {trusted: [e]}", "source type 'e' has no prior"),
        ("taxonomy: {types: {e: {}}}", "source type 'e' has no prior"),
        ("taxonomy: {types: {a: {colour: red}}}", "taxonomy.types.a.colour"),
        ("taxonomy: {reference: t}", "unknown spread 't'"),
        ("taxonomy: {colours: {}}", "taxonomy.colours"),
    ],
)
def test_a_faulty_taxonomy_is_refused(tmp_path, text, part):
    with pytest.raises(InputError, match=re.escape(part)):
        taxonomy(tmp_path, text + "\n")


def test_prompts_name_the_types_of_a_taxonomy_without_words(tmp_path):
    priors = tmp_path / "priors.yaml"
    priors.write_text("spreads: {s: {my_lab: 0.9, my_forum: 0.2}}\n", encoding="utf-8")
    given = {"priors": str(priors), "spread": "s", "out": str(tmp_path / "run")}
    language = open_study(given).language
    assert (language.trusted, language.doubted) == ("my lab", "my forum")


# ---- the example corpus ------------------------------------------------------------------------


def test_hogar48_is_what_its_card_says():
    corpus = read_corpus(HOGAR, known_types=load_priors(HOGAR / "priors.yaml").known_types)
    card = (HOGAR / "README.md").read_text(encoding="utf-8")
    frozen = dict(re.findall(r"^([0-9a-f]{64}) +(\S+)$", card, re.MULTILINE))
    assert set(frozen.values()) == {"documents.jsonl", "topics.jsonl", "qrels.txt"}
    for sha, name in frozen.items():
        assert hashlib.sha256((HOGAR / name).read_bytes()).hexdigest() == sha, name
    assert summarise(corpus).warnings == ()
    assert Counter(t.stance for t in corpus.topics) == {"yes": 2, "no": 2, None: 2}
    label = {n: v for labels in corpus.qrels.values() for n, v in labels.items()}
    assert len(label) == len(corpus.documents) == 48
    hosts = {}
    for d in corpus.documents:
        host = urlsplit(d.url).hostname
        assert host.endswith(".example") and hosts.setdefault(host, d.source) == d.source
        assert not (label[d.docno] and any(c.endswith(":false") for c in d.claims)), d.docno
        assert not d.adversarial or d.source_type in ("tienda", "foro")
    for kind in np.unique(corpus.source_types):
        mine = [d for d in corpus.documents if d.source_type == kind]
        counts = Counter(label[d.docno] for d in mine)
        marks = sum(d.adversarial for d in mine), sum(d.verified for d in mine)
        row = f"| {kind} | {len(mine)} | {counts[2]} | {counts[1]} | {counts[0]} |"
        assert f"{row} {marks[0]} | {marks[1]} |" in card


def test_retrieval_in_spanish_is_as_the_page_says(hogar):
    page = (ROOT / "docs" / "your-own-study.md").read_text(encoding="utf-8")
    found, corpus = load_candidates(hogar), hogar.corpus
    prior = type_prior(hogar)
    systems = {
        "similarity (`all-minilm-l6-v2`)": similarity_system(hogar),
        "source-aware, 3k window": System(prior, 15),
        "source-aware, exact": System(prior, None),
    }
    low = np.isin(corpus.source_types, ("tienda", "foro"))
    for name, system in systems.items():
        top = ranked(found, system, 5).docids
        labels = [
            [corpus.qrels[t.qid].get(corpus.docnos[d], 0) > 0 for d in row]
            for t, row in zip(corpus.topics, top, strict=True)
        ]
        lies = corpus.adversarial[top]
        shown = f"| {name} | {np.mean(labels):.2f} | {lies.mean():.2f} | {lies.any(1).sum()} of 6 |"
        assert f"{shown} {low[top].mean():.2f} |" in page
