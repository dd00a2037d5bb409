-- The database and its roles, once, on the primary, as its superuser:
--   runuser -u postgres -- psql -f roles.sql
-- Afterwards start one gateway, which makes the tables, and run grants.sql.
\set ON_ERROR_STOP on

-- The gateways' role: no superuser, makes no roles and no databases, replicates nothing.
CREATE ROLE wakegate LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
-- The operators': what grants.sql lists, to read alone.
CREATE ROLE wakegate_read LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER ROLE wakegate_read SET default_transaction_read_only = on;
ALTER ROLE wakegate_read SET statement_timeout = '30s';

CREATE DATABASE wakegate TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8';
\connect wakegate
REVOKE ALL ON DATABASE wakegate FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE wakegate TO wakegate, wakegate_read;
-- All that the gateways' role owns: it makes the tables here at its first start, and upgrades add to them.
CREATE SCHEMA wakegate AUTHORIZATION wakegate;
-- A commit is answered when a standby has it on its disk, whatever the server's default becomes.
ALTER ROLE wakegate IN DATABASE wakegate SET synchronous_commit = 'on';
