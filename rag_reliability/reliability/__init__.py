"""Priors on sources, the rankings they give, and the attacks they meet."""
