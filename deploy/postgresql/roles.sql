-- Creates the database and its roles. Run it once, on the primary, as its superuser:
--   runuser -u postgres -- psql -f roles.sql
-- Then start one gateway, which creates the tables, and run grants.sql.
\set ON_ERROR_STOP on

-- The gateways' role: not a superuser; it cannot create roles or databases, and cannot replicate.
CREATE ROLE wakegate LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
-- The operators' role: it can only read, and only the tables in grants.sql.
CREATE ROLE wakegate_read LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER ROLE wakegate_read SET default_transaction_read_only = on;
ALTER ROLE wakegate_read SET statement_timeout = '30s';

CREATE DATABASE wakegate TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8';
\connect wakegate
REVOKE ALL ON DATABASE wakegate FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE wakegate TO wakegate, wakegate_read;
-- The only object of the gateways' role: it creates the tables here at its first start, and upgrades add to them.
CREATE SCHEMA wakegate AUTHORIZATION wakegate;
-- A commit is confirmed after a standby has it on its disk, regardless of the server's default.
ALTER ROLE wakegate IN DATABASE wakegate SET synchronous_commit = 'on';
