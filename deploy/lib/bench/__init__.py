"""Measurements of the release build, each compared with its anchor; deploy/bench runs them."""
