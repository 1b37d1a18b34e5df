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

// DrivesFile is the file with the names of disks that have no serial numbers, as []Drive in JSON.
// It is in the directory that the host shares.
const DrivesFile = "etc/orrery/.drives.json"

// A Drive is a disk without a serial number.
type Drive struct {
	Device string `json:"device"` // name in the kernel
	Name   string `json:"name"`
}

// rulesFile is the file with udev's rules for disks. It is on /run, so it is valid for this boot
// only.
const rulesFile = "udev/rules.d/61-orrery.rules"

// nameDrives makes udev create the same links for the disks as if they had serial numbers.
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
	return os.WriteFile(to, []byte(udevRules(all)), 0o644)
}

// udevRules returns rules of udev(7). They name a disk and its partitions in the same way as udev
// names disks with serial numbers (60-persistent-storage.rules).
func udevRules(all []Drive) string {
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintf(&b, "SUBSYSTEM==\"block\", KERNEL==\"%s\", SYMLINK+=\"disk/by-id/virtio-%s\"\n", d.Device, d.Name)
		fmt.Fprintf(&b, "SUBSYSTEM==\"block\", KERNEL==\"%s[0-9]*\", SYMLINK+=\"disk/by-id/virtio-%s-part%%n\"\n", d.Device,
			d.Name)
	}
	return b.String()
}
