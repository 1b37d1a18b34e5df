#!/bin/sh
# keepalived calls this when a service changes its state: INSTANCE NAME STATE PRIORITY.
mkdir -p /run/orrery-service && cd /run/orrery-service || exit
now=$(date +%s)
# Of two masters, one gives the address up although it is well: one of them took over without need, or they did
# not hear each other. "orrery service ls" counts these.
case "$(cat "$2" 2>/dev/null) $3" in
"MASTER "*" BACKUP")
	{ tail -n 99 ".$2.flaps" 2>/dev/null; echo "$now"; } >".$2.new" && mv ".$2.new" ".$2.flaps" ;;
esac
echo "$3 $now" >".$2" && mv ".$2" "$2"
