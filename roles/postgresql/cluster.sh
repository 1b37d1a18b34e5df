# Makes the data directory on the volume, unless a former node has left one there. Safe to run again.
programs=$(readlink -f /usr/local/lib/postgresql)
version=${programs##*/}
data=/var/lib/postgresql/main

# The number behind the name "postgres" is chosen by apt, so another layer may have another.
if [ -n "$(find /var/lib/postgresql -maxdepth 1 ! -user postgres)" ]; then
    chown -R postgres:postgres /var/lib/postgresql
fi
if [ ! -e "$data" ]; then
    rm -rf "$data.new" # which a killed run may have left
    runuser -u postgres -- "$programs/bin/initdb" -D "$data.new" --locale C.UTF-8 --encoding UTF8 --data-checksums \
        --auth-local peer --auth-host scram-sha-256
    mv "$data.new" "$data"
fi
if [ "$(cat "$data/PG_VERSION")" != "$version" ]; then
    echo "the volume has the data of PostgreSQL $(cat "$data/PG_VERSION"), but the node has PostgreSQL $version:" \
        "keep the suite of the image, dump all databases there (pg_dumpall), and load them into an empty volume" >&2
    exit 1
fi
