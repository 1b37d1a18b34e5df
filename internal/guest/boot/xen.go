package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// xenbus is where the kernel of a guest of Xen shows its devices.
const xenbus = "/sys/bus/xen/devices"

// connecting is how long the two halves of a device may take to find one another: the host's begins
// when a script of the host has said so.
const connecting = 5 * time.Minute

// connected waits until what Xen gives this machine can be used. Of other devices a driver finds
// all there is when it is loaded; of these, it finds an entry, and goes on when the other half
// answers.
func connected() error {
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		waiting, err := halves(xenbus)
		if err != nil || len(waiting) == 0 {
			return err
		}
		if time.Since(begun) > connecting {
			return fmt.Errorf("the host does not answer for %s", strings.Join(waiting, ", "))
		}
	}
}

// halves returns the devices on a bus that have a driver here and nobody at the other end, as
// "vif-0 (Initialising)". Consoles, screens and keyboards are nothing that is waited for.
func halves(bus string) (waiting []string, err error) {
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
