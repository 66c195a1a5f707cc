"""The explorer: one question in JupyterLab, with its priors, rules and labels in reach."""

from rag_reliability.explorer.widgets import explore

__all__ = ["explore"]
