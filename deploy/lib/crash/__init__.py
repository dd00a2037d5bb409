"""Kills at random moments, and the comparison of the gateway's counters with those of its clients."""
