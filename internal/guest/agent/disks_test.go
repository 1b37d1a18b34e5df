package agent

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/transport/rpc"
	"orrery/test/need"
)

// TestWithSerial checks that a disk is found by its serial number.
func TestWithSerial(t *testing.T) {
	sys := t.TempDir()
	for name, serial := range map[string]string{"vda": "orrery-root", "vdb": "data\n", "sr0": ""} {
		dir := filepath.Join(sys, "block", name)
		must(t, os.MkdirAll(dir, 0o755))
		if serial != "" {
			must(t, os.WriteFile(filepath.Join(dir, "serial"), []byte(serial), 0o600))
		}
	}
	if got := strings.Join(withSerial(sys, "data"), " "); got != "vdb" || withSerial(sys, "dat") != nil {
		t.Errorf("found %q", got)
	}
}

// TestDiskUsers checks that the users of a disk are named. They are a mounted file system, even in
// another namespace, a process that has the disk open, and devices built on it.
func TestDiskUsers(t *testing.T) {
	need.Integration(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "disk")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Truncate(file, 16<<20))
	loop := func(of string) (name string) {
		out, err := exec.Command("losetup", "--find", "--show", of).Output()
		must(t, err)
		device := strings.TrimSpace(string(out))
		t.Cleanup(func() { _ = exec.Command("losetup", "--detach", device).Run() })
		return filepath.Base(device)
	}
	disk := loop(file)
	must(t, exec.Command("mkfs.ext4", "-q", "/dev/"+disk).Run())
	must(t, checkUnused(t.Context(), disk))
	must(t, checkUnused(t.Context(), "no-such-disk"))
	wants := func(by string) {
		t.Helper()
		var used *rpc.InUse
		if err := checkUnused(t.Context(), disk); !errors.As(err, &used) || !strings.Contains(used.By, by) {
			t.Errorf("%v, want %q", err, by)
		}
	}
	_, end := during(t, "unshare", "--mount", "--propagation", "private", "sh", "-c",
		"mount /dev/"+disk+" "+dir+"; echo begun; exec sleep 1000")
	wants("the mount at " + dir)
	end()
	_, end = during(t, "sh", "-c", "exec 9</dev/"+disk+"; echo begun; exec sleep 1000")
	wants("sleep (process ")
	end()
	above := loop("/dev/" + disk)
	wants(above)
	must(t, exec.Command("losetup", "--detach", "/dev/"+above).Run())
	must(t, checkUnused(t.Context(), disk))
}
