package argv

import (
	"os"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// TestDrives: QEMU gets the format of each disk, and no backing file, whatever the image says.
func TestDrives(t *testing.T) {
	n := someNode()
	n.VM = site.VM{
		Disk: site.QCow2, Size: 1 << 30,
		Disks: []site.Drive{{Name: "data", Disk: "/dev/vg/lv",
			DiskSettings: site.DiskSettings{Cache: "none", AIO: "native", Read: 1 << 20, IOPS: 7}},
			{Name: "log", Disk: site.RawFile, Size: 1 << 26, DiskSettings: site.DiskSettings{Cache: "directsync"}}},
	}
	m := &Machine{Node: n, Boot: someBoot, Accel: observe.TCG}
	args, files, err := m.CommandLine()
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/drives")
	if err != nil {
		t.Fatal(err)
	}
	from := strings.Index(strings.Join(args, "\n"), "-add-fd\nfd=17")
	if from < 0 {
		t.Fatalf("%q", args)
	}
	if got := strings.Join(args, "\n")[from:] + "\n"; got != string(golden) {
		t.Errorf("got\n%s", got)
	}
	if names := files.Names(); strings.Join(names[len(names)-3:], ",") != "disk orrery-root,disk data,disk log" {
		t.Errorf("%q", names)
	}
}
