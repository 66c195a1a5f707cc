"""The report's fixed words: its question, captions and alternative texts, limits, commands."""

from __future__ import annotations

from collections.abc import Mapping

QUESTION = (
    "Retrieval for language models ranks passages by similarity alone, so a fluent piece "
    "of misinformation can stand above a guideline. If the similarity is multiplied by a "
    "reliability prior of the document's source type, does the answer become safer: by "
    "how much, with what certainty, at what cost to true documents from humble sources, "
    "and what is left of it when an adversary lies about the source?"
)

# By figure: caption, alternative text.
CAPTIONS: Mapping[str, tuple[str, str]] = {
    "per_topic": (
        "P@5 and adversarial share of the top 5, topic by topic. The thin line joins a "
        "topic's systems.",
        "Dot plot with a row for each topic and a mark for each of three systems; the "
        "same values stand in the table of wins and losses.",
    ),
    "study_comparison": (
        "The published study's numbers (stars) beside ours with 95 % bootstrap intervals.",
        "Points with intervals for each metric under similarity only and source-aware "
        "ranking, and stars for the study; the numbers stand in the table above.",
    ),
    "spread_sensitivity": (
        "What the spread of the priors does: the priors raised to the power γ (left), and"
        " the named spreads (right).",
        "Curves with bands of P@5 and adversarial share over γ from 0, no prior, upward; "
        "next to them points with intervals for the spreads none, compressed, current and"
        " aggressive.",
    ),
    "k_window": (
        "Over the number of documents kept (left) and over the rank window (right). A "
        "window of k keeps similarity's own documents; “exact” ranks everything.",
        "Lines over k and points with intervals over the rank window, a row of panels for"
        " each metric.",
    ),
    "feedback": (
        "Priors learnt from a simulated oracle's feedback, fold by fold; dashed: the "
        "hand-set values.",
        "A line of prior values over feedback steps for each source type, with thin lines"
        " for the separate folds.",
    ),
    "smoothing": (
        "Single-hop smoothing of the priors over each document's neighbours, by weight α "
        "and number of neighbours.",
        "Lines with intervals over the smoothing weight for several numbers of "
        "neighbours, a panel for each metric.",
    ),
    "rank_flow": (
        "One topic: each document's way from its rank by similarity to its rank by "
        "similarity times prior. Thick: crosses into or out of the top k. Dashed with a "
        "cross: adversarial.",
        "Slope chart of one topic's documents, ranks by similarity on the left and "
        "source-aware ranks on the right, coloured by source type.",
    ),
    "iso_score": (
        "The same topic: similarity against prior. On a grey line the score is equal; the"
        " black one passes through the last document kept. Ringed: the top k by "
        "similarity alone.",
        "Scatter plot of similarity and prior with lines of equal score; documents above "
        "the black line make the top k.",
    ),
    "answers": (
        "The generated answers and the yes/no stance probe, by system and prompt.",
        "Six panels of points with intervals: grounding, trusted grounding, adversarial "
        "uptake, correctness, harm and stance error; the numbers stand in the tables.",
    ),
    "learned_priors": (
        "Priors by source type: set by hand, and learned from judged documents, with 95 % credible "
        "intervals. Cross-fitted: a topic is ranked with priors counted on other topics.",
        "For each source type a point for the prior set by hand and points with intervals for "
        "what judged documents say.",
    ),
    "grounding_check": (
        "What the grounding scorer is worth: how it parts supported pairs from others, how far its "
        "support can be read as a share (dotted: the edges of its bands), and its error when it "
        "judges only those it is surest of.",
        "Three panels with a line for each set of pairs: ROC curves, calibration with intervals, "
        "and balanced error over the share of pairs judged; the numbers stand in the table.",
    ),
    "threats": (
        "When adversarial documents claim a trusted source type: from none to all of them.",
        "Adversarial share and P@5 over the share of spoofed documents, for source-aware "
        "ranking and, dashed, similarity alone.",
    ),
    "threat_curves": (
        "Ranking rules when a share of the adversarial documents claims a trusted source type, and "
        "a share of those passes the check of sources.",
        "Lines with bands of adversarial share and P@5 over the share of spoofed documents, one "
        "for each rule and a panel for each share that is verified.",
    ),
    "no_regret": (
        "What each rule risks and gains against similarity alone: its worst change over all spoof "
        "rates, its change under honest labels, and the true low-tier documents it still shows.",
        "Points with intervals, a row for each rule, in four panels; the same values stand in the "
        "table of worst cases.",
    ),
    "corpus_overview": (
        "The corpus by source type and by topic: labels judge content, never the source.",
        "Stacked bars of document counts by label and of adversarial documents, for each "
        "source type and each topic.",
    ),
}

LIMITS: tuple[str, ...] = (
    "The corpus is small and synthetic: ten topics give wide intervals, and its "
    "adversarial documents were written for it, not found in the wild.",
    "The priors are set by hand; a source type says nothing of a single document.",
    "The feedback oracle knows the labels. It shows what feedback could do, not what a "
    "deployed system would get.",
    "The language model is small: it copies well and reasons badly, so answers follow the"
    " passages more closely than a larger model's might.",
    "Correctness, harm and grounding are scored automatically. On other health answers of two "
    "sentences the judge of claim pairs was right in 83 % of those it decided "
    "(configs/grounding.yaml); it reads denials as affirmations more often than the reverse, and "
    "harm counts a topic's side claims too. Differences between systems mean more than levels.",
    "Short answers can hardly touch all three claims of a topic, so correctness stays near a third "
    "even for a right answer.",
)

_SCORERS = (
    "Correctness, harm and grounding are scored automatically, by scorers that were calibrated on "
    "English health answers and not on this corpus. Differences between systems mean more than "
    "levels."
)
_LANGUAGE = (
    "No score was calibrated in this corpus's language, and the encoder of the scorers may hardly "
    "know it: bands and verdicts are rough. Words that tell a contradiction between documents are "
    "English, so rules that look for contradictions find none here."
)


def own_limits(n_topics: int, *, english: bool) -> tuple[str, ...]:
    """Limits of a run on a corpus other than the study's; a reader adds those of the corpus."""
    first = f"Everything rests on {n_topics} topics; the intervals say how little or much that is."
    return (first, *LIMITS[1:4], _SCORERS, *(() if english else (_LANGUAGE,)))


OWN_RERUN: tuple[str, ...] = (
    "rag-reliability run --config FILE --out FOLDER",
    "rag-reliability figures --out FOLDER",
)
RERUN: tuple[str, ...] = (
    "make reproduce",
    "rag-reliability run -p spread aggressive --out reports/aggressive",
    "make figures",
)
