"""Does one sentence deny what a nearly identical one says? Words only, precision first.

Measured on NIH pages (LiveQA-Med over MedQuAD): of 252,154 pairs of different honest pages on one
topic (BM25 top 50 for 300 page titles) 29 are flagged, 1 in 8,700, some of which do disagree ("22
million", "25 million"); of 500 honest near copies with words changed for synonyms none; of 20,980
pairs of true answers to one question (trec-hm-answers) one. Copies in which every sentence is
contradicted by ``rewording.contradict`` are found in 99 % of cases, one sentence negated in 96 %,
one antonym in 92 %, one number in 86 %. Those rules and these word lists are by the same authors:
on claims and counter-claims written by hand (health120, not used in making the lists) 23 of 30 are
found. A lie in its own words is not found at all.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|\s[-•*]\s")
_TOKEN = re.compile(
    r"\d+(?:[-–./:]\d+){2,}"  # telephone numbers and dates: names, not amounts
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?![^\W_])"
    r"|[^\W_]+(?:[-'’][^\W_]+)*"
)
_UNIT = re.compile(r"(?<=\d)(?=(?:mg|mcg|µg|g|kg|ml|l|cm|mm|iu|lb|oz|kcal)\b)", re.IGNORECASE)
_AMOUNT = re.compile(r"\d[\d,]*(?:\.\d+)?")
_YEAR = re.compile(r"(?:19|20)\d\d")

_DENYING = """not no never none neither nor cannot nothing nobody without hardly rarely seldom
    scarcely unable inability lack lacks lacking fail fails failed absent absence doesnt dont didnt
    isnt arent wasnt werent cant wont couldnt wouldnt shouldnt hasnt havent hadnt"""
# Idioms that hold a negative word and deny nothing, or not what stands around them.
_IDIOM = re.compile(
    r"\bnot (?:only|just|merely|necessarily|always|all|every)\b|\bor not\b|\bor without\b"
    r"|\bno (?:one|matter|doubt)\b|\bif not\b",
    re.IGNORECASE,
)
_COUNTS = "two three four five six seven eight nine ten"
# Words of which a number is the name: "stage 2" and "stage 3" are two things, not two amounts.
_NAMING_WORDS = """stage stages type types grade phase step table figure chapter section part level
    class group category version vitamin omega factor hepatitis chromosome trisomy gene exon room
    box day week month year years january february march april may june july august september
    october november december page volume question number cycle arm article title"""
_FUNCTION_WORDS = """a an the this that these those it its they them their there he she his her we
    our us you your i is are was were be been being am do does did have has had having can could may
    might must shall should will would to of in on at by for from as with into about than then so
    and or but if also some many often still both such very per percent cent again which who whom
    whose what when where while because since though although any all each other another only up out
    over under however therefore thus even yet just"""
# Words of phrases such as "in short,", "as a matter of fact,"; and answers ("No, it does not").
_RHETORICAL = """yes no short brief summary fact matter clear plainly plain put simply practice
    words word truth reality indeed overall sum note actually certainly again essentially
    basically"""
_PAIRS = """increase/decrease increase/reduce increase/lower raise/lower raise/reduce rise/fall
    rise/drop grow/shrink gain/lose high/low higher/lower highest/lowest more/less more/fewer
    most/least most/few greater/smaller larger/smaller large/small big/small long/short
    longer/shorter longest/shortest fast/slow faster/slower quick/slow early/late earlier/later
    before/after strong/weak stronger/weaker mild/severe mild/serious better/worse best/worst
    good/bad improve/worsen improve/aggravate help/harm help/hurt helpful/harmful beneficial/harmful
    benefit/harm benefit/risk safe/unsafe safely/unsafely safe/dangerous safe/risky safe/harmful
    safely/dangerously effective/useless effective/futile cause/prevent cause/cure promote/prevent
    promote/inhibit stimulate/inhibit activate/inhibit allow/prevent start/stop begin/stop begin/end
    continue/stop common/rare usual/rare frequent/rare frequently/rarely always/rarely
    usually/rarely often/rarely commonly/rarely likely/unlikely positive/negative true/false
    right/wrong accept/reject support/refute confirm/refute recommend/discourage
    encourage/discourage approve/ban allow/ban allow/forbid include/exclude present/absent
    open/closed hot/cold warm/cold wet/dry full/empty easy/difficult easy/hard simple/complex
    permanent/temporary acute/chronic benign/malignant worsen/relieve worsen/ease trigger/relieve
    trigger/prevent strengthen/weaken lengthen/shorten enhance/impair boost/suppress boost/lower
    protect/endanger healthy/unhealthy sufficient/lacking enough/insufficient avoid/take avoid/use
    avoid/eat contagious/harmless curable/fatal everyone/nobody everything/nothing contain/lack
    survive/die living/dead major/minor above/below inside/outside together/apart agree/disagree"""
_NEGATIVE = frozenset(_DENYING.split())
_NUMERALS = {word: float(i) for i, word in enumerate(_COUNTS.split(), start=2)}
_NAMING = frozenset(_NAMING_WORDS.split())
_FUNCTION = frozenset(_FUNCTION_WORDS.split())
_OPENING = frozenset(_RHETORICAL.split()) | _FUNCTION
# "Three types of treatment are used" is said of many things: amounts need a fuller sentence.
_FEWEST_COUNTED = 5
_PREFIXES = ("un", "in", "im", "ir", "il", "dis")


class Statement(NamedTuple):
    """A sentence as it is compared.

    words: stems of its content words, in order. amounts: its numbers, sorted. negative: whether it
    holds an odd number of negations; None where an idiom makes that uncertain.
    """

    words: tuple[str, ...]
    amounts: tuple[float, ...]
    negative: bool | None


def statements(text: str) -> tuple[Statement, ...]:
    """The text's sentences of at least three content words, in order; questions are left out."""
    pieces = (piece.strip() for piece in _SENTENCE.split(text))
    read = (_statement(piece) for piece in pieces if piece and not piece.endswith("?"))
    return tuple(statement for statement in read if len(set(statement.words)) >= 3)


def contradict(a: Statement, b: Statement) -> bool:
    """Whether two sentences say the same but for exactly one of: negation, numbers, an antonym.

    The content words must be the same and in the same order, except for one antonym pair and for at
    most one word in six, two in all, that only one of the two has; amounts need five content words.
    So a sentence about another thing, built after the same pattern, does not count: a word replaced
    by one that is no antonym leaves the pair alone.
    """
    spare = min(2, max(len(a.words), len(b.words)) // 6)
    more, less = Counter(a.words), Counter(b.words)
    only_a, only_b = more - less, less - more
    turned = _antonyms(only_a, only_b)
    left_a = only_a - Counter(x for x, _ in turned)
    left_b = only_b - Counter(y for _, y in turned)
    if (left_a and left_b) or (left_a + left_b).total() > spare or len(turned) > 1:
        return False
    if [w for w in a.words if w not in only_a] != [w for w in b.words if w not in only_b]:
        return False
    if a.negative is None or b.negative is None:
        return False
    if len(a.amounts) != len(b.amounts):
        return False
    if a.amounts != b.amounts and min(len(a.words), len(b.words)) < _FEWEST_COUNTED:
        return False
    differences = (a.negative != b.negative, a.amounts != b.amounts, len(turned) == 1)
    return sum(differences) == 1


def _statement(sentence: str) -> Statement:
    start, comma, rest = sentence.partition(",")
    if comma and _OPENING.issuperset(start.lower().split()):
        sentence = rest
    words: list[str] = []
    amounts: list[float] = []
    negations, before = 0, ""
    for token in _TOKEN.findall(_UNIT.sub(" ", sentence.lower().replace("’", "'"))):
        negative, amount, stem = _read(token)
        if negative:  # "neither … nor" denies once
            negations += token != "nor"
        elif amount is not None and before not in _NAMING:
            amounts.append(amount)
        elif amount is not None or stem is None:
            words.append(f"{before} {token}")
        elif stem:
            words.append(stem)
        before = token
    odd = None if _IDIOM.search(sentence) else bool(negations % 2)
    return Statement(tuple(words), tuple(sorted(amounts)), odd)


@lru_cache(maxsize=2**16)
def _read(token: str) -> tuple[bool, float | None, str | None]:
    """Whether a word denies; what it counts; its stem ("" for function words, None for years)."""
    if token in _NEGATIVE or token.endswith("n't"):
        return True, None, ""
    if token in _NUMERALS:
        return False, _NUMERALS[token], ""
    if _YEAR.fullmatch(token):
        return False, None, None
    if _AMOUNT.fullmatch(token):
        return False, float(token.replace(",", "")), ""
    return False, None, "" if token in _FUNCTION else _stem(token)


def _stem(word: str) -> str:
    """The word without a regular ending: "causes", "caused", "causing" and "cause" are one."""
    for ending, put in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + put
    return word


def _both_ways(pairs: str) -> frozenset[tuple[str, str]]:
    split = [pair.split("/") for pair in pairs.split()]
    stems = [(_stem(x), _stem(y)) for x, y in split]
    return frozenset(stems) | frozenset((y, x) for x, y in stems)


_OPPOSITES = _both_ways(_PAIRS)


def _antonyms(only_a: Counter[str], only_b: Counter[str]) -> list[tuple[str, str]]:
    return [(x, y) for x in only_a for y in only_b if _opposite(x, y)]


def _opposite(x: str, y: str) -> bool:
    short, long = sorted((x, y), key=len)
    by_prefix = len(short) >= 4 and any(long == prefix + short for prefix in _PREFIXES)
    return by_prefix or (x, y) in _OPPOSITES
