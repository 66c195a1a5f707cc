"""Everything that can be refused before the first notebook starts is refused here."""

from __future__ import annotations

from collections.abc import Collection

from rag_reliability.experiment.ranking import SYSTEMS
from rag_reliability.experiment.study import Study
from rag_reliability.generation.prompt import ARMS
from rag_reliability.records import InputError


def preflight(study: Study, *, answers: bool = True) -> None:
    """Check names, priors, corpus and models of a run, cheapest first.

    ``answers``: whether anything is generated, so that the generator's weights are needed.

    Raises InputError, one line, for the first thing that is wrong.
    """
    known("answer_systems", study.config.answer_systems, SYSTEMS)
    known("arms", study.config.arms, tuple(ARMS))
    study.priors.table(study.config.spread)
    study.need_topics()
    if answers and not {"yes", "no"} <= {topic.stance for topic in study.corpus.topics}:
        raise InputError(
            f"{study.config.corpus}: a whole run needs topics whose stance is yes and others whose "
            "stance is no; for rankings alone run notebooks/rankings.ipynb"
        )
    study.language  # noqa: B018 (read and checked)
    study.taxonomy  # noqa: B018
    for model in (study.config.encoder, *([study.config.generator] if answers else [])):
        study.model_sha(model)


def known(parameter: str, names: Collection[str], there_are: Collection[str]) -> None:
    """Refuse a name that does not exist.

    Raises InputError naming the parameter, the name and the known ones.
    """
    if not names:
        raise InputError(f"{parameter} is empty; known: {', '.join(there_are)}")
    for name in names:
        if name not in there_are:
            raise InputError(f"{parameter}: unknown {name!r}; known: {', '.join(there_are)}")
