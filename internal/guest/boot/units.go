package boot

import (
	"os"
	"path/filepath"
)

// conditions are drop-ins for units of systemd that have nothing to do in most machines, but take a
// sixth of the processor time of a boot. Each of them starts a program that searches the index of
// modules. They run as before where they have something to do.
var conditions = map[string]string{
	// As in systemd 256, with ConditionKernelModuleLoaded.
	"modprobe@.service":           "ConditionPathExists=!/sys/module/%i\n",
	"modprobe@efi_pstore.service": "ConditionPathExists=/sys/firmware/efi\n",
	// For systemd-repart, which has the same conditions. Other programs open /dev/mapper/control and
	// /dev/loop-control, which loads them.
	"modprobe@dm_mod.service": repartConditions,
	"modprobe@loop.service":   repartConditions,
	// It removes snapshots that LVM made.
	"e2scrub_reap.service": "ConditionPathExists=/sbin/lvcreate\n",
}

const repartConditions = `ConditionDirectoryNotEmpty=|/usr/lib/repart.d
ConditionDirectoryNotEmpty=|/usr/local/lib/repart.d
ConditionDirectoryNotEmpty=|/etc/repart.d
ConditionDirectoryNotEmpty=|/run/repart.d
`

// writeConditions writes the drop-ins into a directory of units.
func writeConditions(units string) error {
	for unit, text := range conditions {
		dir := filepath.Join(units, unit+".d")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		// orrery.conf in /etc, which images have, would replace a file of the same name here.
		if err := os.WriteFile(filepath.Join(dir, "orrery-guest.conf"), []byte("[Unit]\n"+text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
