"""Figures, tables and the report, drawn from tidy tables only."""
