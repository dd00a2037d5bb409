"""Faults that are planted in a copy of the sources, and the tests that must detect them; deploy/mutations runs them."""
