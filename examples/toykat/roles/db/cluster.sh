# Makes the PostgreSQL cluster on the volume unless a former node has left one there, and puts the schema where the service finds it
# when it has started. Safe to run again.

# The number behind the name "postgres" is chosen by apt, so another layer may have another.
if [ -n "$(find /var/lib/postgresql -maxdepth 1 ! -user postgres)" ]; then
    chown -R postgres:postgres /var/lib/postgresql
fi

# /etc/postgresql is a link to the volume (see role.toml): the cluster's configuration stays with its data.
if [ ! -e /etc/postgresql/15/main/postgresql.conf ]; then
    install -d -o postgres -g postgres /var/lib/postgresql/etc
    pg_createcluster 15 main --port 5432 --locale C.UTF-8 --encoding UTF8 -- --data-checksums
fi
ln -sfn /etc/toykat/postgresql.conf /etc/postgresql/15/main/conf.d/toykat.conf
install -m 0644 "$ORRERY_ROLE_DIR/schema.sql" /etc/toykat/schema.sql
