"""Measurements of the build that is shipped, each beside its anchor; deploy/bench runs them."""
