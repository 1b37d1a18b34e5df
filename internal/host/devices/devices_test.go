package devices

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site/device"
)

// A made is a made-up host, whose device files are ordinary ones.
type made struct {
	Host
	t       *testing.T
	numbers map[string]Number // by path
	inUse   map[string]bool
}

func newHost(t *testing.T) *made {
	dir := t.TempDir()
	m := &made{t: t, numbers: map[string]Number{}, inUse: map[string]bool{}}
	m.Host = Host{Dev: filepath.Join(dir, "dev"), Sys: filepath.Join(dir, "sys"), Claims: filepath.Join(dir, "claims"),
		stat: func(path string) (Number, os.FileMode, error) {
			if n, ok := m.numbers[path]; ok {
				return n, 0o660, nil
			}
			return Number{}, 0, errNoDevice
		},
		busy: func(path string, _ Number) error {
			if m.inUse[path] {
				return errBusy
			}
			return nil
		}}
	m.add("fuse", Number{Major: 10, Minor: 229}, "devices/virtual/misc/fuse")
	m.add("sda", Number{true, 8, 0}, "devices/pci/ata/block/sda")
	m.add("sda1", Number{true, 8, 1}, "devices/pci/ata/block/sda/sda1")
	m.add("sda2", Number{true, 8, 2}, "devices/pci/ata/block/sda/sda2")
	m.add("sdb", Number{true, 8, 16}, "devices/pci/usb1/1-2/host/block/sdb")
	m.add("sg0", Number{Major: 21}, "devices/pci/ata/scsi_generic/sg0")
	m.add("bus/usb/001/001", Number{Major: 189}, "devices/pci/usb1")
	m.add("bus/usb/001/002", Number{Major: 189, Minor: 1}, "devices/pci/usb1/1-2")
	m.add("bus/usb/002/001", Number{Major: 189, Minor: 128}, "devices/pci/usb2")
	m.write("sys/devices/pci/ata/block/sda/sda1/partition", "1")
	m.write("sys/devices/pci/ata/block/sda/sda2/partition", "2")
	m.link("sys/devices/pci/ata/scsi_generic/sg0/subsystem", "../../../../../class/scsi_generic")
	for name, ids := range map[string]string{"usb1": "1d6b 0002", "usb1/1-2": "0951 1666", "usb2": "1d6b 0003"} {
		vendor, product, _ := strings.Cut(ids, " ")
		m.write("sys/devices/pci/"+name+"/idVendor", vendor+"\n")
		m.write("sys/devices/pci/"+name+"/idProduct", product+"\n")
		m.link("sys/bus/usb/devices/"+filepath.Base(name), "../../../devices/pci/"+name)
	}
	m.link("sys/block/sda", "../devices/pci/ata/block/sda")
	m.link("sys/block/sdb", "../devices/pci/usb1/1-2/host/block/sdb")
	m.link("dev/disk/by-id/ata-1", "../../sda2")
	m.link("dev/outside", "../sys/bus")
	m.link("dev/dangling", "nowhere")
	m.write("dev/file", "")
	m.write("node/1", "")
	m.write("node/2", "")
	return m
}

func (m *made) at(name string) string { return filepath.Join(filepath.Dir(m.Dev), name) }

func (m *made) write(name, text string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.at(name)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.at(name), []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *made) link(name, to string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.at(name)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Symlink(to, m.at(name)); err != nil {
		m.t.Fatal(err)
	}
}

// add adds a device, with its directory in sysfs.
func (m *made) add(name string, n Number, sys string) {
	m.t.Helper()
	m.write("dev/"+name, "")
	m.numbers[filepath.Join(m.Dev, name)] = n
	m.write("sys/"+sys+"/uevent", "MAJOR=8\nDEVNAME="+name+"\n")
	m.write("sys/"+sys+"/dev", strings.ReplaceAll(filepath.Base(m.path(n))[len("char-"):], "-", ":"))
	if n.Block {
		m.write("sys/"+sys+"/dev", strings.ReplaceAll(filepath.Base(m.path(n))[len("block-"):], "-", ":"))
	}
	if err := os.MkdirAll(filepath.Dir(m.sysPath(n)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Symlink(m.at("sys/"+sys), m.sysPath(n)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *made) claim(node string, all ...device.Device) ([]Lent, error) {
	return m.Claim(m.t.Context(), "site/"+node, m.at("node/"+node), all)
}

// paths returns the files that a node gets for a device.
func (m *made) paths(d device.Device) string {
	m.t.Helper()
	lent, err := m.claim("1", d)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, f := range lent[0].Files {
		all = append(all, f.Path+" "+filepath.Base(m.path(f.Number))+" "+f.Access)
	}
	if err := m.Release(m.t.Context(), "site/1"); err != nil {
		m.t.Error(err)
	}
	return strings.Join(all, ", ")
}

// TestResolve: which files a node gets, and what it does not get.
func TestResolve(t *testing.T) {
	for path, want := range map[string]string{
		"/dev/fuse":             "/dev/fuse char-10-229 rw",
		"/dev/disk/by-id/ata-1": "/dev/disk/by-id/ata-1 block-8-2 rw",
		"block:8:*": "/dev/sda block-8-0 rw, /dev/sda1 block-8-1 rw, " +
			"/dev/sda2 block-8-2 rw, /dev/sdb block-8-16 rw",
		"block:8:16":    "/dev/sdb block-8-16 rw",
		"usb:1d6b:0003": "/dev/bus/usb/002/001 char-189-128 rw",

		"/dev/none":     "device /dev/none does not exist (connect it",
		"/dev/dangling": "device /dev/dangling does not exist",
		"/dev/file":     "/dev/file is not a device file (name a device file",
		"/dev/disk":     "/dev/disk is not a device file",
		"/dev/outside":  "device /dev/outside is a link out of /dev",
		"block:9:*":     "no device is block:9:* (/proc/devices",
		"char:8:*":      "no device is char:8:*",
		"usb:ffff:0001": "no device usb:ffff:0001 is plugged in (lsusb",
		"/dev/sg0":      "device /dev/sg0 reaches a disk without the kernel's checks, and no node gets it",
		"char:21:0":     "device /dev/sg0 reaches a disk",
		"usb:0951:1666": "device /dev/bus/usb/001/002 reaches the disk sdb",
		"usb:1d6b:0002": "device /dev/bus/usb/001/001 reaches the disk sdb",
	} {
		if got := newHost(t).paths(device.Device{Path: path}); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestDangerous: devices that reach what belongs to the host, under any name.
func TestDangerous(t *testing.T) {
	for n, name := range map[Number]string{{Major: 1, Minor: 1}: "memory", {Major: 1, Minor: 2}: "memory",
		{Major: 1, Minor: 4}: "ports", {Major: 5, Minor: 1}: "console", {Major: 10, Minor: 236}: "disks",
		{Major: 4, Minor: 1}:    "terminal",
		{Major: 10, Minor: 203}: "makes devices"} {
		m := newHost(t)
		m.add("harmless", n, "devices/virtual/harmless")
		got := m.paths(device.Device{Path: "/dev/harmless"})
		if !strings.Contains(got, name) || !strings.Contains(got, "no node gets it") {
			t.Errorf("%v: %s", n, got)
		}
	}
}

// TestInUse: a block device that the host uses is not lent, nor is a class that contains one.
func TestInUse(t *testing.T) {
	m := newHost(t)
	m.inUse[filepath.Join(m.Dev, "sda1")] = true
	for path, want := range map[string]string{
		"/dev/sda1": "device /dev/sda1 is in use by this host", "block:8:*": "device /dev/sda1 is in use by this host",
		"/dev/sdb": "/dev/sdb block-8-16 rw",
	} {
		if got := m.paths(device.Device{Path: path}); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if entries, err := os.ReadDir(m.Claims); err != nil || len(entries) > 1 {
		t.Errorf("claims are left: %v, %v", entries, err)
	}
}

// TestClaims: two nodes have the same device only if both share it, whatever its name. A disk and its
// partitions are the same device. A claim of a node that no longer exists protects nothing.
func TestClaims(t *testing.T) {
	const used = "is used by node site/1 (stop that node first, or write shared = true for both)"
	dev := func(path string) device.Device { return device.Device{Path: path} }
	shared := func(path string) device.Device { return device.Device{Path: path, Shared: true} }
	for name, c := range map[string]struct {
		first, second device.Device
		want          string
	}{
		"two":                     {dev("/dev/fuse"), dev("/dev/fuse"), used},
		"only one shares":         {shared("/dev/fuse"), dev("/dev/fuse"), used},
		"only the other shares":   {dev("/dev/fuse"), shared("/dev/fuse"), used},
		"shared":                  {shared("/dev/fuse"), shared("/dev/fuse"), ""},
		"by another name":         {dev("/dev/sda2"), dev("/dev/disk/by-id/ata-1"), used},
		"a partition of a disk":   {dev("/dev/sda"), dev("/dev/sda1"), used},
		"the disk of a partition": {dev("/dev/sda1"), dev("/dev/sda"), used},
		"another partition":       {dev("/dev/sda1"), dev("/dev/sda2"), ""},
		"another disk":            {dev("/dev/sda"), dev("/dev/sdb"), ""},
		"in a class":              {dev("/dev/sdb"), dev("block:8:*"), used},
	} {
		t.Run(name, func(t *testing.T) {
			m := newHost(t)
			if _, err := m.claim("1", c.first); err != nil {
				t.Fatal(err)
			}
			if _, err := m.claim("1", c.first); err != nil {
				t.Errorf("again by the same node: %v", err)
			}
			lacks := m.Lacks("site/2", c.second)
			_, err := m.claim("2", dev("/dev/fuse"), c.second)
			if c.first.Path == "/dev/fuse" {
				_, err = m.claim("2", c.second)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v", err)
			}
			if (lacks == observe.Missing{}) != (c.want == "") {
				t.Errorf("the plan says %+v", lacks)
			}
			if err != nil {
				if left, _ := m.claims(); len(left) != 1 {
					t.Errorf("half of them is claimed: %+v", left)
				}
			}
			if err := m.Release(t.Context(), "site/1"); err != nil {
				t.Fatal(err)
			}
			if _, err := m.claim("2", c.second); err != nil {
				t.Errorf("after the first was released: %v", err)
			}
		})
	}
	m := newHost(t)
	if _, err := m.claim("1", dev("/dev/fuse")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(m.at("node/1")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.claim("2", dev("/dev/fuse")); err != nil {
		t.Errorf("after the first node was removed: %v", err)
	}
}

// TestUser: a virtual machine learns that a container has its disk, or a partition of it.
func TestUser(t *testing.T) {
	m := newHost(t)
	if _, err := m.claim("1", device.Device{Path: "/dev/sda2", Shared: true}); err != nil {
		t.Fatal(err)
	}
	for minor, want := range map[uint32]string{0: "site/1", 1: "", 2: "site/1", 16: ""} {
		if user, err := m.User(Number{true, 8, minor}); user != want || err != nil {
			t.Errorf("%d: %q, %v", minor, user, err)
		}
	}
}

// TestPresent: a device that vanishes, or comes back under another number, is not the one that was lent.
func TestPresent(t *testing.T) {
	m := newHost(t)
	lent, err := m.claim("1", device.Device{Path: "/dev/fuse"}, device.Device{Path: "/dev/sdb"})
	if err != nil {
		t.Fatal(err)
	}
	if all := m.Present(lent); len(all) != 2 {
		t.Errorf("got %v", all)
	}
	m.numbers[filepath.Join(m.Dev, "sdb")] = Number{true, 8, 32}
	if all := m.Present(lent); len(all) != 1 || all[0].Path != "/dev/fuse" {
		t.Errorf("got %v", all)
	}
	if err := os.Remove(m.at("dev/fuse")); err != nil {
		t.Fatal(err)
	}
	if all := m.Present(lent); len(all) != 0 {
		t.Errorf("got %v", all)
	}
	lacks := m.Lacks("site/1", device.Device{Path: "/dev/fuse"})
	if !strings.Contains(lacks.What, "does not exist") || lacks.Cure == "" {
		t.Errorf("got %+v", lacks)
	}
}
