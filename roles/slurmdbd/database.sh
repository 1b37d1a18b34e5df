#!/bin/sh
# Creates the database if it is missing. The user slurm of this node needs no password (unix_socket). Safe to run again.
set -eu
mariadb --batch <<'END'
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL PRIVILEGES ON slurm_acct_db.* TO slurm@localhost;
END
