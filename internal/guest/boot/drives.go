package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DrivesFile is where a machine whose disks have no serial numbers finds how they are called, as
// []Drive in JSON: in the directory that the host shows to it.
const DrivesFile = "etc/orrery/.drives.json"

// A Drive is a disk of such a machine.
type Drive struct {
	Device string `json:"device"` // what the kernel calls it
	Name   string `json:"name"`
}

// rulesFile is where udev finds what is told of disks: on /run, for this boot.
const rulesFile = "udev/rules.d/61-orrery.rules"

// nameDrives lets udev call the disks as it would if they had serial numbers.
func nameDrives(root, run string) error {
	text, err := os.ReadFile(filepath.Join(root, DrivesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var all []Drive
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("%s: %w", DrivesFile, err)
	}
	to := filepath.Join(run, rulesFile)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, []byte(rulesOf(all)), 0o644)
}

// rulesOf are rules of udev(7): a disk and its partitions are called as those are that are known by
// a serial number (60-persistent-storage.rules).
func rulesOf(all []Drive) string {
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintf(&b, "SUBSYSTEM==\"block\", KERNEL==\"%s\", SYMLINK+=\"disk/by-id/virtio-%s\"\n", d.Device, d.Name)
		fmt.Fprintf(&b, "SUBSYSTEM==\"block\", KERNEL==\"%s[0-9]*\", SYMLINK+=\"disk/by-id/virtio-%s-part%%n\"\n", d.Device,
			d.Name)
	}
	return b.String()
}
