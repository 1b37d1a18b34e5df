# Creates the users and databases that are missing, and sets the users' password. Safe to run again.
sql() { mariadb --batch; }

# The password is in no command line, and may contain any character.
password=$(base64 -w 0 "$ORRERY_SECRETS/mariadb_password")
for user in $ORRERY_PARAM_USERS; do
    sql <<END
CREATE USER IF NOT EXISTS '$user'@'%';
SET @statement = CONCAT('ALTER USER ''$user''@''%'' IDENTIFIED BY ', QUOTE(FROM_BASE64('$password')));
EXECUTE IMMEDIATE @statement;
END
done
for database in $ORRERY_PARAM_DATABASES; do
    name=${database%%:*} user=${database#*:}
    echo "CREATE DATABASE IF NOT EXISTS \`$name\`;" | sql
    [ "$user" = "$database" ] || echo "GRANT ALL PRIVILEGES ON \`$name\`.* TO '$user'@'%';" | sql
done
