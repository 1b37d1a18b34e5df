# Writes the users and virtual hosts that the server creates when it starts. Safe to run again.

# The number behind the name "rabbitmq" is chosen by apt, so another layer may have another.
if [ -n "$(find /var/lib/rabbitmq -maxdepth 1 ! -user rabbitmq)" ]; then
    chown -R rabbitmq:rabbitmq /var/lib/rabbitmq
fi
# base64(SALT || SHA-256(SALT || PASSWORD)), as RabbitMQ stores passwords.
password_hash() {
    salt=$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n' | tr a-f A-F)
    sum=$({ printf %s "$salt" | basenc -d --base16; cat "$ORRERY_SECRETS/rabbitmq_password"; } | sha256sum)
    printf %s "$salt${sum%% *}" | tr a-f A-F | basenc -d --base16 | base64 -w 0
}
permit() { printf '{"user":"%s","vhost":"%s","configure":".*","write":".*","read":".*"}' "$1" "$2"; }

users='' vhosts='{"name":"/"}' permissions=''
for user in $ORRERY_PARAM_USERS; do
    users="$users,{\"name\":\"$user\",\"password_hash\":\"$(password_hash)\",\"hashing_algorithm\":\"rabbit_password_hashing_sha256\",\"tags\":\"\"}"
    permissions="$permissions,$(permit "$user" /)"
done
for vhost in $ORRERY_PARAM_VHOSTS; do
    vhosts="$vhosts,{\"name\":\"${vhost%%:*}\"}"
    permissions="$permissions,$(permit "${vhost#*:}" "${vhost%%:*}")"
done
umask 077
cat >/etc/rabbitmq/definitions.json.new <<END
{"users":[${users#,}],"vhosts":[$vhosts],"permissions":[${permissions#,}]}
END
chown rabbitmq:rabbitmq /etc/rabbitmq/definitions.json.new
mv /etc/rabbitmq/definitions.json.new /etc/rabbitmq/definitions.json
