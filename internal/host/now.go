package host

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/observe"
)

// Now returns the time on this machine. The time since boot also counts while the machine is
// suspended (CLOCK_BOOTTIME).
func Now() observe.Timestamp {
	now := observe.Timestamp{Calendar: time.Now()}
	var since unix.Timespec
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err == nil && unix.ClockGettime(unix.CLOCK_BOOTTIME, &since) == nil {
		now.Boot, now.Since = strings.TrimSpace(string(boot)), time.Duration(since.Nano())
	}
	return now
}
