"""Measurements of the release build, each compared with a reference; deploy/bench runs them."""
