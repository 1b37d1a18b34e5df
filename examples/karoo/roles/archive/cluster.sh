# Makes the PostgreSQL cluster on the volume, unless a former node has left one there. Safe to run again.

# The number behind the name "postgres" is chosen by apt, so another layer may have another.
if [ -n "$(find /var/lib/postgresql -maxdepth 1 ! -user postgres)" ]; then
    chown -R postgres:postgres /var/lib/postgresql
fi
if [ ! -e /var/lib/postgresql/karoo/PG_VERSION ]; then
    rm -rf /var/lib/postgresql/karoo
    runuser -u postgres -- /usr/lib/postgresql/15/bin/initdb -D /var/lib/postgresql/karoo --locale C.UTF-8 --encoding UTF8 --data-checksums
fi
