# Creates the users and databases that are missing, and sets the users' password. Safe to run again.
case " ${ORRERY_PEERS_ORRERY_POSTGRESQL_REPLICA:-} " in *" $ORRERY_NODE "*) exit ;; esac # it has those of its primary
cd /
sql() { /usr/local/lib/postgresql/bin/psql -q -p "$ORRERY_PARAM_PORT" -d postgres -v ON_ERROR_STOP=1 "$@"; }

for user in $ORRERY_PARAM_USERS; do
    # psql reads the password itself: it is in no command line.
    sql -v user="$user" <<'END'
\set password `cat "$ORRERY_SECRETS/postgresql_password"`
SELECT format('CREATE ROLE %I LOGIN', :'user') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'user') \gexec
ALTER ROLE :"user" PASSWORD :'password';
END
done
if [ -n "${ORRERY_PEERS_ORRERY_POSTGRESQL_REPLICA:-}" ]; then
    sql <<'END'
\set password `cat "$ORRERY_SECRETS/postgresql_password"`
SELECT 'CREATE ROLE orrery_replica LOGIN REPLICATION' WHERE NOT EXISTS
    (SELECT FROM pg_roles WHERE rolname = 'orrery_replica') \gexec
ALTER ROLE orrery_replica PASSWORD :'password';
END
fi
for database in $ORRERY_PARAM_DATABASES; do
    owner=${database#*:}
    [ "$owner" != "$database" ] || owner=postgres
    sql -v name="${database%%:*}" -v owner="$owner" <<'END'
SELECT format('CREATE DATABASE %I', :'name') WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \gexec
ALTER DATABASE :"name" OWNER TO :"owner";
END
done
