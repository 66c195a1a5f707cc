"""A PyTerrier transformer: ``retriever >> SourceReliability()``; needs no Java."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rag_reliability.integrations.settings import Settings, not_installed

try:
    import pyterrier as pt
except ImportError as error:
    raise not_installed("pyterrier", "pyterrier") from error


class SourceReliability(pt.Transformer):
    """Ranks each question's documents by similarity and the reliability of their source.

    Takes a result frame (qid, docno, score) with the columns that ``Settings`` names for source
    type, verification and publisher; those that are missing count as unknown. ``score`` must be a
    similarity. Gives the same columns with the rule's score and rank.
    """

    def __init__(self, num_results: int | None = None, **settings: Any) -> None:
        """num_results: how many to keep of each question (None: all); settings: of ``Settings``.

        Raises: ValueError for a setting that is unknown or out of range.
        """
        super().__init__()
        self.num_results = num_results
        self.settings = Settings(**settings)

    def __repr__(self) -> str:
        given = {"num_results": self.num_results} if self.num_results is not None else {}
        given |= self.settings.model_dump(exclude_defaults=True)
        return f"SourceReliability({', '.join(f'{k}={v!r}' for k, v in given.items())})"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The frame with each question's documents in the order of the rule.

        Raises: InputError for a document without score, or without a known source type.
        """
        pt.validate.result_frame(inp, extra_columns=["score"], context=self)
        groups = [self._ranked(rows) for _, rows in inp.groupby("qid", sort=False)]
        found = pd.concat(groups, ignore_index=True) if groups else inp
        ranks = found.groupby("qid", sort=False).cumcount() + pt.model.FIRST_RANK
        return found.drop(columns="rank", errors="ignore").assign(rank=ranks)

    def _ranked(self, rows: pd.DataFrame) -> pd.DataFrame:
        names = (self.settings.source_type_field, self.settings.verified_field)
        present = [c for c in (*names, self.settings.source_field) if c in rows.columns]
        labels = rows[present].astype(object)
        ranked = self.settings.arranged(
            rows["score"].tolist(),
            labels.where(labels.notna(), None).to_dict(orient="records"),
            rows["docno"].tolist(),
            self.num_results,
        )
        return rows.iloc[ranked.order].assign(score=ranked.scores)
