"""Scores of rankings and answers, and how sure we are of their differences."""
