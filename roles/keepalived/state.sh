#!/bin/sh
# keepalived calls this when a service changes its state: INSTANCE NAME STATE PRIORITY.
mkdir -p /run/orrery-service
echo "$3 $(date +%s)" >"/run/orrery-service/.$2" && mv "/run/orrery-service/.$2" "/run/orrery-service/$2"
