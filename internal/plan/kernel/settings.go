// Package kernel decides which kernel settings a host with many nodes needs.
package kernel

import (
	"maps"
	"slices"
	"strconv"

	"orrery/internal/site/spec"
)

const forwarding = "net.ipv4.ip_forward"

// Settings are the kernel settings (sysctl.d(5)) of a host that runs many nodes. inotify(7) counts
// all users of a node against one, its root, and systemd and its services soon use up 128
// instances. Privileged nodes count against the host's root. The neighbour table is shared by all
// networks. Forwarding is needed to masquerade and to publish ports.
var Settings = map[string]string{
	"fs.inotify.max_user_instances": "8192",
	"fs.inotify.max_user_watches":   "524288",
	"kernel.keys.maxbytes":          "2000000", // keyrings(7): systemd makes one for each service
	"kernel.keys.maxkeys":           "2000",
	// The value that systemd sets. With less, four nodes could use up all process ids of the host.
	"kernel.pid_max":                    "4194304",
	"kernel.pty.max":                    "8192",
	"net.ipv4.neigh.default.gc_thresh3": "8192",
	forwarding:                          "1",
}

// isSufficient reports whether a setting is at least the wanted value. A setting that the kernel does not
// have is not needed.
func isSufficient(current, wants string) bool {
	if current == "" {
		return true
	}
	h, err1 := strconv.Atoi(current)
	w, err2 := strconv.Atoi(wants)
	if err1 != nil || err2 != nil {
		return current == wants
	}
	return h >= w
}

// Missing returns the kernel settings that must be set on a host first, with the desired values.
// Forwarding is included only if forward is true.
func Missing(settings map[string]string, forward bool) spec.PartDigests {
	lacks := spec.PartDigests{}
	for _, key := range slices.Sorted(maps.Keys(Settings)) {
		if key == forwarding && !forward {
			continue
		}
		if !isSufficient(settings[key], Settings[key]) {
			lacks[key] = Settings[key]
		}
	}
	return lacks
}
