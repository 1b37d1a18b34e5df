# Makes the PostgreSQL cluster on the volume unless a former node has left one there,
# and sees to it that it runs with the present configuration. Safe to run again.
cluster="15 main"

# The number behind the name "postgres" is chosen by apt, so another layer may have another.
if [ -n "$(find /var/lib/postgresql -maxdepth 1 ! -user postgres)" ]; then
    chown -R postgres:postgres /var/lib/postgresql
fi

# /etc/postgresql is a link to the volume (see role.toml): the cluster's configuration stays with its data.
if [ ! -e /etc/postgresql/15/main/postgresql.conf ]; then
    install -d -o postgres -g postgres /var/lib/postgresql/etc
    pg_createcluster $cluster --port 5432 --locale C.UTF-8 --encoding UTF8 -- --data-checksums
fi
ln -sfn /etc/toykat/postgresql.conf /etc/postgresql/15/main/conf.d/toykat.conf

# start: 2 means that it runs already; reload: for a changed pg_hba.conf.
pg_ctlcluster $cluster start || [ $? -eq 2 ]
pg_ctlcluster $cluster reload
