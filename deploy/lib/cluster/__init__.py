"""Several gateways on one PostgreSQL: the servers, a proxy between them, the load, and what must be true afterwards."""
