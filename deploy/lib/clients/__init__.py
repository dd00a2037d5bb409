"""Clients of the gateway and of its peers: loads, workers, operators, and an attacker."""
