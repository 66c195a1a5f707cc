"""Prompts, local language models, answers and the stance probe."""
