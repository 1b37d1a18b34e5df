package host

import (
	"os"
	"strings"
)

// Online returns the processors of this machine that are online, as the kernel lists them, or "" if
// unknown.
func Online() string {
	text, _ := os.ReadFile("/sys/devices/system/cpu/online")
	return strings.TrimSpace(string(text))
}
