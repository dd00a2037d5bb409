"""Clients of the gateway and of its peers: loads, workers, operators, and one that breaks the rules."""
