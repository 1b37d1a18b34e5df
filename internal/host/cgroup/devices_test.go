package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"orrery/internal/host"
	"orrery/test/need"
)

// TestAllowDevices checks, with both versions, that processes of a group can open the allowed
// devices only.
func TestAllowDevices(t *testing.T) {
	need.Integration(t)
	null, err := DeviceAt("/dev/null")
	must(t, err)
	urandom, err := DeviceAt("/dev/urandom")
	must(t, err)
	for _, at := range []mountPoint{hostMount, hostMount + "/unified"} {
		if _, v2 := at.hierarchiesByVersion(); !at.isV1("devices") && v2 == "" {
			continue
		}
		t.Run(string(at), func(t *testing.T) {
			g := Group{at, "orrery/it-cgroup/5"}
			t.Cleanup(func() { Remove(g); RemoveEmpty("it-cgroup") })
			must(t, g.Create())
			for _, c := range []struct {
				devices []Device
				opens   string
			}{{[]Device{null}, "null\n"}, {[]Device{urandom, null}, "null\nurandom\n"}} {
				must(t, g.AllowDevices(c.devices))
				cmd := exec.Command("sh", "-c", "for d in null urandom zero; do head -c1 /dev/$d 2>/dev/null >&3 && echo $d; done")
				got, err := os.CreateTemp(t.TempDir(), "")
				must(t, err)
				sink, err := os.OpenFile("/dev/null", os.O_WRONLY, 0)
				must(t, err)
				cmd.Stdout, cmd.ExtraFiles = got, []*os.File{sink}
				must(t, host.OnLockedThread(func() error { return g.Start(cmd) }))
				_ = cmd.Wait()
				opened, err := os.ReadFile(got.Name())
				must(t, err)
				if string(opened) != c.opens {
					t.Errorf("instead of %q it opens %q", c.opens, opened)
				}
			}
		})
	}
}

// TestAllowsDevices: a group still has the rules that it was given, also among others and within wider ones.
func TestAllowsDevices(t *testing.T) {
	dir := t.TempDir()
	g := Group{mountPoint(dir), "orrery/site/5"}
	if !AllowsDevices(g, []string{"b 8:1 rw"}) {
		t.Error("programs of version 2 cannot be read")
	}
	must(t, os.MkdirAll(g.file("devices", ""), 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, "devices", g.name), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "devices/cgroup.procs"), nil, 0o600))
	if AllowsDevices(g, []string{"b 8:1 rw"}) {
		t.Error("a missing group allows a device")
	}
	must(t, os.WriteFile(g.file("devices", "devices.list"), []byte("c *:* m\nb 8:1 rw\nc 10:229 rwm\n"), 0o600))
	for rule, want := range map[string]bool{
		"b 8:1 rw": true, "b 8:1 r": true, "c 10:229 rw": true, "b 8:2 rw": false, "c 8:1 rw": false, "b 8:1 rwm": false,
	} {
		if AllowsDevices(g, []string{rule}) != want {
			t.Errorf("%s: %v", rule, !want)
		}
	}
}
