package rootfs

import "strings"

// Devices are the devices that containers may use, as rules for control groups. LXC creates their
// terminals. The host's console, 5:1, is not included. Containers may create any device node (m),
// because overlayfs uses one as a whiteout, but they may not open others.
var Devices = []string{
	"c *:* m", "b *:* m",
	"c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm", // null, zero, full, random, urandom
	"c 5:0 rwm", "c 5:2 rwm", "c 136:* rwm", // tty, ptmx, pts
}

// DeviceRules returns the rules for these devices in LXC's configuration, for both versions of
// control groups. They must come after included files, because LXC's own profile for user
// namespaces removes all rules (/usr/share/lxc/config/userns.conf).
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
