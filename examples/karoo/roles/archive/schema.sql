-- The database, its one table and its one user, whatever was there before. Safe to run again.
SELECT 'CREATE DATABASE karoo' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'karoo') \gexec
\connect karoo
SET client_min_messages = warning;  -- "already exists, skipping" is no news

CREATE TABLE IF NOT EXISTS samples (
    time   timestamptz NOT NULL DEFAULT now(),
    node   text        NOT NULL,
    sensor text        NOT NULL,
    value  text        NOT NULL
);
CREATE INDEX IF NOT EXISTS samples_series ON samples (node, sensor, time);

-- psql reads the password itself: it stands in no command line.
\set password `cat /etc/orrery/secrets/archive_password`
SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'cam') AS missing \gset
\if :missing
    CREATE ROLE cam LOGIN;
\endif
ALTER ROLE cam PASSWORD :'password';
GRANT SELECT, INSERT ON samples TO cam;
