import pytest

from rag_reliability.text import parse_citations, plain, sentences, strip_citations


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("No. [2]", (2,)),
        ("So it is [1, 3] and [2].", (1, 2, 3)),
        ("Ranges [1-3] and [4–5].", (1, 2, 3, 4, 5)),
        ("Unknown passages are not citations [0] [9].", ()),
        ("A huge one [1-99999999999].", (1, 2, 3, 4, 5)),
        ("A year (2019) or [sic] is none.", ()),
    ],
)
def test_citations_are_the_numbers_of_passages_shown(text, cited):
    assert parse_citations(text, 5) == cited


def test_citations_are_stripped_with_the_blank_before_them():
    assert strip_citations("It works [1, 2]. Mostly [3].") == "It works. Mostly."


def test_a_citation_after_the_full_stop_stays_with_its_sentence():
    assert sentences("Exercise helps. [1] It lasts [2].") == [
        "Exercise helps. [1]",
        "It lasts [2].",
    ]


def test_abbreviations_and_decimals_do_not_end_a_sentence():
    assert sentences("Dr. Field gave 3.5 mg. It helped.") == [
        "Dr. Field gave 3.5 mg.",
        "It helped.",
    ]


def test_no_text_has_no_sentences():
    assert sentences("  \n ") == []


def test_control_characters_go_and_letters_stay():
    assert plain("a\x1b[31mb\u202e\n\tλ\x00") == "a[31mb\n\tλ"


def test_marks_before_their_sentences_stay_with_them():
    assert sentences("[1] Honey is unsafe.\n[2] It can hold spores.") == [
        "[1] Honey is unsafe.",
        "[2] It can hold spores.",
    ]
    assert sentences("[1] One claim. [3]") == ["[1] One claim. [3]"]
