#!/bin/sh
# Creates the tables that are missing. The user tango of this node needs no password (unix_socket). Safe to run again.
set -eu
mariadb --batch <<'END'
CREATE DATABASE IF NOT EXISTS tango;
CREATE USER IF NOT EXISTS tango@localhost IDENTIFIED VIA unix_socket;
GRANT ALL PRIVILEGES ON tango.* TO tango@localhost;
END
tables=$(mariadb -BNe "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'tango'")
if [ "$tables" = 0 ]; then
    mariadb --batch tango </usr/share/dbconfig-common/data/tango-db/install/mysql
fi
# The starter of this node is a device, which must be in the database before it starts.
node=$(hostname)
for device in "tango/admin/$node Starter" "dserver/starter/$node DServer"; do
    name=${device% *}
    domain=${name%%/*} rest=${name#*/}
    mariadb --batch tango <<END
INSERT INTO device (name, domain, family, member, exported, ior, host, server, pid, class, version)
SELECT '$name', '$domain', '${rest%/*}', '${rest#*/}', 0, 'nada', 'nada', 'Starter/$node', 0, '${device#* }', '0' FROM DUAL
WHERE NOT EXISTS (SELECT * FROM device WHERE name = '$name');
END
done
