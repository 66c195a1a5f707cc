"""Encoding text and searching the index by similarity."""
