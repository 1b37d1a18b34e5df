#!/bin/sh
# keepalived asks whether this node may have service $1. "orrery service move" writes the file, and removes it. If
# it was interrupted, the file counts for half a minute.
[ -z "$(find "/run/orrery-service-away/$1" -newermt '30 seconds ago' 2>/dev/null)" ]
