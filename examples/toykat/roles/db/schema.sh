# The database, its one table and its one user. Safe to run again.
psql -qAt -d postgres -c "SELECT 1 FROM pg_database WHERE datname = 'toykat'" | grep -q 1 ||
    createdb toykat
exec psql -q -d toykat -v ON_ERROR_STOP=1 -f "$ORRERY_ROLE_DIR/schema.sql"
