// Package kernel decides which kernel settings a host with many nodes needs.
package kernel

import (
	"maps"
	"slices"
	"strconv"

	"orrery/internal/site/spec"
)

const forwarding = "net.ipv4.ip_forward"

// Settings are the kernel settings (sysctl.d(5)) of a host that runs many nodes: inotify(7) counts
// all users of a node against one, its root, and 128 instances are soon taken by systemd and its
// services; what is privileged counts against the host's root; neighbours are kept for all networks
// together; forwarding is needed to masquerade.
var Settings = map[string]string{
	"fs.inotify.max_user_instances": "8192",
	"fs.inotify.max_user_watches":   "524288",
	"kernel.keys.maxbytes":          "2000000", // keyrings(7): systemd makes one for each service
	"kernel.keys.maxkeys":           "2000",
	// what systemd sets; else four nodes can take all process ids of the host
	"kernel.pid_max":                    "4194304",
	"kernel.pty.max":                    "8192",
	"net.ipv4.neigh.default.gc_thresh3": "8192",
	forwarding:                          "1",
}

// enough reports whether a setting is at least what is wanted; one that the kernel does not have is no lack.
func enough(current, wants string) bool {
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

// Lacking returns the kernel settings, with the values they shall have, that a host must be given first.
func Lacking(settings map[string]string, forward bool) spec.Parts {
	lacks := spec.Parts{}
	for _, key := range slices.Sorted(maps.Keys(Settings)) {
		if key == forwarding && !forward {
			continue
		}
		if !enough(settings[key], Settings[key]) {
			lacks[key] = Settings[key]
		}
	}
	return lacks
}
