"""Kills at random moments, and the comparison of the gateway's books with those of its clients."""
