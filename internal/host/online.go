package host

import (
	"os"
	"strings"
)

// OnlineCPUs returns the processors of this machine that are online, as the kernel lists them, or "" if
// unknown.
func OnlineCPUs() string {
	text, _ := os.ReadFile("/sys/devices/system/cpu/online")
	return strings.TrimSpace(string(text))
}
