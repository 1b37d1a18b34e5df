# Makes the data directory on the volume, unless a former node has left one there: a new one, or a copy of the
# primary's. Safe to run again.
programs=$(readlink -f /usr/local/lib/postgresql)
version=${programs##*/}
data=/var/lib/postgresql/main

# The number behind the name "postgres" is chosen by apt, so another layer may have another.
if [ -n "$(find /var/lib/postgresql -maxdepth 1 ! -user postgres)" ]; then
    chown -R postgres:postgres /var/lib/postgresql
fi
replicas=" ${ORRERY_PEERS_ORRERY_POSTGRESQL_REPLICA:-} " primary=
case $replicas in
*" $ORRERY_NODE "*)
    primary=$ORRERY_PARAM_PRIMARY
    if [ -z "$primary" ]; then
        for node in $ORRERY_PEERS_ORRERY_POSTGRESQL; do
            case $replicas in *" $node "*) ;; *) primary="$primary $node" ;; esac
        done
    fi
    case $primary in '' | *" "*" "*)
        echo "which node is the primary ($primary)? Set the parameter primary of orrery/postgresql" >&2
        exit 1
        ;;
    esac
    primary=${primary# }
    # Not in the data, so that a new password gets there.
    password=$(sed 's/[\\:]/\\&/g' "$ORRERY_SECRETS/postgresql_password")
    (umask 077 && printf '*:*:*:orrery_replica:%s\n' "$password" >/var/lib/postgresql/.pgpass)
    chown postgres:postgres /var/lib/postgresql/.pgpass
    ;;
esac
if [ -n "$primary" ] && [ ! -e "$data" ]; then
    rm -rf "$data.new"
    HOME=/var/lib/postgresql runuser -u postgres -- "$programs/bin/pg_basebackup" --no-password --checkpoint=fast \
        --write-recovery-conf -D "$data.new" -d "host=$primary port=$ORRERY_PARAM_PORT user=orrery_replica"
    mv "$data.new" "$data"
elif [ ! -e "$data" ]; then
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
# There are never two primaries by mistake: whoever makes another node the primary says so here.
if [ -n "$primary" ] && [ ! -e "$data/standby.signal" ]; then
    echo "$data is of a primary: remove it, and it is copied from $primary" >&2
    exit 1
elif [ -z "$primary" ] && [ -e "$data/standby.signal" ]; then
    echo "$data is of a replica: once the former primary is gone for good, remove $data/standby.signal," \
        "and this node is the primary" >&2
    exit 1
fi
