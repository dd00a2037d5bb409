"""A day of a fleet of devices in virtual time, and the page about it; deploy/fleet-day runs it."""
