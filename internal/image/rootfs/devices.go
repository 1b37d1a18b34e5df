package rootfs

import "strings"

// Devices are those that containers have, as rules for control groups. Terminals are LXC's own; the
// host's console, 5:1, is none of them. Devices may be made (m), because overlayfs marks by one
// what is removed, but no others opened.
var Devices = []string{
	"c *:* m", "b *:* m",
	"c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm", // null, zero, full, random, urandom
	"c 5:0 rwm", "c 5:2 rwm", "c 136:* rwm", // tty, ptmx, pts
}

// DeviceRules writes the devices that a container may use for LXC's configuration, in both versions
// of control groups. They come after what is included: LXC's own profile for user namespaces takes
// all rules away (/usr/share/lxc/config/userns.conf).
func DeviceRules(devices []string) string {
	var b strings.Builder
	for _, group := range []string{"lxc.cgroup", "lxc.cgroup2"} {
		for _, forget := range []string{".devices.deny =\n", ".devices.allow =\n", ".devices.deny = a\n"} {
			b.WriteString(group + forget)
		}
		for _, rule := range devices {
			b.WriteString(group + ".devices.allow = " + rule + "\n")
		}
	}
	return b.String()
}
