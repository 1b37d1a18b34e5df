#!/bin/sh
# A node is healthy when it holds the addresses of its services, or could take them over: when keepalived has found
# its other roles healthy. A backup must have been one for so long that, without a holder, it would be the holder.
conf=/etc/keepalived/keepalived.conf
election=$(awk '$1 == "advert_int" && $2 > most { most = $2 } END { print int(4 * most) + 2 }' $conf) # seconds
for name in $(sed -n 's/^vrrp_instance \(.*\) {$/\1/p' $conf); do
	state='' since=0
	read -r state since <"/run/orrery-service/$name"
	case $state in
	MASTER) continue ;;
	BACKUP) [ $(($(date +%s) - since)) -ge "$election" ] && continue ;;
	esac
	[ -e "/run/orrery-service-away/$name" ] && continue # it is being moved
	echo "service $name: this node is not ready to hold its address${state:+ ($state)}" >&2
	exit 1
done
