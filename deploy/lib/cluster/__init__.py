"""Several gateways on one PostgreSQL: the servers, a proxy between them, the load, and the final checks."""
