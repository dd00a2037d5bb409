-- Run it after the first start of a gateway and after each upgrade, on the primary, as its superuser:
--   runuser -u postgres -- psql -d wakegate -f grants.sql
\set ON_ERROR_STOP on

-- Operators can read the state of gateways and queues. They cannot read device tokens, payloads, the delivery log and
-- the key of the device numbers (tables device, event, push, bundle, value).
GRANT USAGE ON SCHEMA wakegate TO wakegate_read;
GRANT SELECT ON wakegate.meta, wakegate.topic, wakegate.connection TO wakegate_read;
GRANT SELECT (number, schema, since, reported_at, alive, buried) ON wakegate.gateway TO wakegate_read;
GRANT SELECT (at) ON wakegate.due TO wakegate_read;
GRANT SELECT (kind, topic, since) ON wakegate.ready TO wakegate_read;
GRANT SELECT (holder, deadline, ended) ON wakegate.wake TO wakegate_read;
-- Full access to pg_stat_replication and pg_stat_activity.
GRANT pg_read_all_stats TO wakegate_read;
