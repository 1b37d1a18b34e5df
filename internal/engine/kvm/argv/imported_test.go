package argv

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"orrery/internal/image/foreign"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// blocks returns the nodes of the block graph by name, the command line, and the names of its files.
func blocks(t *testing.T, m *Machine) (map[string]map[string]any, string, []string) {
	t.Helper()
	args, files, err := m.CommandLine()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for i, arg := range args {
		if i > 0 && args[i-1] == "-blockdev" {
			n := map[string]any{}
			if err := json.Unmarshal([]byte(arg), &n); err != nil {
				t.Fatal(err)
			}
			all[n["node-name"].(string)] = n
		}
	}
	return all, strings.Join(args, " "), files.Names()
}

// TestImported: QEMU is told the backing file of a foreign disk, and opens no file of the host but
// firmware.
func TestImported(t *testing.T) {
	n := someNode()
	n.Disk = site.Disk{Firmware: site.UEFI, Guest: site.CloudInit, Login: "debian", Bus: site.Virtio}
	m := &Machine{Node: n, Accel: observe.TCG,
		Disk: Disk{Format: foreign.QCow2, Seed: true, Code: "/usr/share/OVMF/OVMF_CODE_4M.fd"}}
	all, line, files := blocks(t, m)
	for name, node := range all {
		path, _ := node["filename"].(string)
		if path != "" && !strings.HasPrefix(path, "/dev/fdset/") && path != m.Disk.Code {
			t.Errorf("%s is opened by its path: %s", name, path)
		}
	}
	if backing, said := all["base"]["backing"]; !said || backing != nil || all["base"]["read-only"] != true ||
		all["base-file"]["read-only"] != true {
		t.Errorf("%v", all["base"])
	}
	if all["root"]["backing"] != "base" || all["root"]["driver"] != "qcow2" {
		t.Errorf("%v", all["root"])
	}
	for _, want := range []string{"virtio-blk-pci,drive=root", "scsi-cd,", "restrict=on", "pflash0=code,pflash1=vars",
		"mac=" + LinkMAC} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %s", want, line)
		}
	}
	for _, name := range []string{Base, Overlay, Vars, Seed, Record, Console, Monitor} {
		if !slices.Contains(files, name) {
			t.Errorf("%s is not handed over: %v", name, files)
		}
	}
	if !strings.Contains(line, "-vnc none -device VGA") || strings.Contains(line, "vnc :") {
		t.Errorf("its screen: %s", line)
	}
	if strings.Contains(line, "virtserialport") || strings.Contains(line, "-kernel") || m.BootFiles() != nil {
		t.Error(line)
	}
}

// TestImportedOther: an unknown system gets no seed, and no card besides those of its site.
func TestImportedOther(t *testing.T) {
	n := someNode()
	n.Disk = site.Disk{Firmware: site.BIOS, Guest: site.NoGuest, Bus: site.SATA}
	all, line, files := blocks(t, &Machine{Node: n, Accel: observe.TCG, Disk: Disk{Format: foreign.Raw}})
	if _, said := all["base"]["backing"]; said || all["base"]["driver"] != "raw" {
		t.Errorf("%v", all["base"])
	}
	if !strings.Contains(line, "ide-hd,bus=ide.0,drive=root") || strings.Contains(line, "pflash") ||
		strings.Contains(line, "type=user") || strings.Contains(line, "user,id=link") || slices.Contains(files, Seed) {
		t.Error(line)
	}
}
