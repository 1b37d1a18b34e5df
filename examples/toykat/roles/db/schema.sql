-- The database, its one table and its one user. Safe to run again.
SELECT 'CREATE DATABASE toykat' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'toykat') \gexec
\connect toykat
SET client_min_messages = warning;  -- "already exists, skipping" is no news

CREATE TABLE IF NOT EXISTS samples (
    time     timestamptz NOT NULL,
    receptor text        NOT NULL,
    sensor   text        NOT NULL,
    value    double precision,       -- of a number or a boolean
    text     text,                   -- of anything else
    status   text        NOT NULL
);
CREATE INDEX IF NOT EXISTS samples_series ON samples (receptor, sensor, time);
CREATE INDEX IF NOT EXISTS samples_time   ON samples (time);

-- psql reads the password itself: it stands in no command line.
\set password `cat /etc/orrery/secrets/db_password`
SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'portal') AS missing \gset
\if :missing
    CREATE ROLE portal LOGIN;
\endif
ALTER ROLE portal PASSWORD :'password';
GRANT SELECT, INSERT, DELETE ON samples TO portal;
