package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// xenbus is the directory in which the kernel of a guest of Xen lists its devices.
const xenbus = "/sys/bus/xen/devices"

// connectTimeout limits how long the frontend and backend of a device may take to connect. The backend
// starts only after a script of the host has run.
const connectTimeout = 5 * time.Minute

// waitConnected waits until the devices of Xen can be used. The driver of another device finds all its
// parts when it is loaded. A driver of Xen only finds an entry, and continues when the backend
// answers.
func waitConnected() error {
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		waiting, err := unconnected(xenbus)
		if err != nil || len(waiting) == 0 {
			return err
		}
		if time.Since(begun) > connectTimeout {
			return fmt.Errorf("the host has not connected these devices: %s", strings.Join(waiting, ", "))
		}
	}
}

// unconnected returns the devices on a bus that have a driver but no connected backend, as "vif-0
// (Initialising)". It ignores consoles, screens and keyboards.
func unconnected(bus string) (waiting []string, err error) {
	devices, err := filepath.Glob(bus + "/*")
	if err != nil {
		return nil, err
	}
	for _, at := range devices {
		name := filepath.Base(at)
		if kind, _, _ := strings.Cut(name, "-"); !slices.Contains([]string{"9pfs", "vif", "vbd"}, kind) {
			continue
		}
		if _, err := os.Lstat(at + "/driver"); err != nil {
			continue
		}
		state, err := os.ReadFile(at + "/state")
		if err != nil {
			return nil, err
		}
		if s := strings.TrimSpace(string(state)); s != "Connected" {
			waiting = append(waiting, fmt.Sprintf("%s (%s)", name, s))
		}
	}
	return waiting, nil
}
