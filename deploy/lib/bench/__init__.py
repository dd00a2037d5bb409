"""Measurements of a release build, each beside its anchor; deploy/bench runs them."""
