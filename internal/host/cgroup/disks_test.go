package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/diskio"
)

// fakeGroup returns a group in a directory that serves as a mount point, of one version.
func fakeGroup(t *testing.T, v1 bool) Group {
	t.Helper()
	at := t.TempDir()
	g := Group{mountPoint(at), "orrery/karoo/5"}
	dirs := []string{at, filepath.Join(at, g.name)}
	if v1 {
		dirs = []string{filepath.Join(at, "blkio"), filepath.Join(at, "blkio", g.name)}
	}
	for _, dir := range dirs {
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), nil, 0o644))
	}
	if !v1 {
		must(t, os.WriteFile(filepath.Join(at, "cgroup.controllers"), []byte("cpu io memory\n"), 0o644))
	}
	return g
}

// TestDiskFiles: both versions get the same limits, and a limit that is not set is removed.
func TestDiskFiles(t *testing.T) {
	l := diskio.Limits{Read: 1e8, IOPS: 1000}
	for v1, want := range map[bool]string{
		true: "blkio.throttle.read_bps_device=8:0 100000000 blkio.throttle.write_bps_device=8:0 0 " +
			"blkio.throttle.read_iops_device=8:0 1000 blkio.throttle.write_iops_device=8:0 1000",
		false: "io.max=8:0 rbps=100000000 wbps=max riops=1000 wiops=1000",
	} {
		var all []string
		for _, f := range fakeGroup(t, v1).at.diskFiles(l, []string{"8:0"}) {
			if f.V1 != v1 {
				t.Errorf("%+v", f)
			}
			all = append(all, f.Name+"="+f.Value)
		}
		if got := strings.Join(all, " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestDiskLimits: limits are read as they are, and what is not as wanted is told apart.
func TestDiskLimits(t *testing.T) {
	for _, v1 := range []bool{true, false} {
		g := diskGroup{fakeGroup(t, v1)}
		if g.at.lacksDiskLimits() != (observe.Missing{}) {
			t.Errorf("version 1 %t cannot limit", v1)
		}
		write := func(l diskio.Limits, devices ...string) {
			contents := map[string]string{}
			for _, f := range g.at.diskFiles(l, devices) {
				if !strings.HasSuffix(f.Value, " 0") {
					contents[f.Name] += f.Value + "\n"
				}
			}
			for _, f := range g.at.diskFiles(l, []string{"0:0"}) {
				must(t, os.WriteFile(g.file(f.Controller, f.Name), []byte(contents[f.Name]), 0o644))
			}
		}
		l := diskio.Limits{Read: 1e8, Write: 5e7, IOPS: 1000}
		write(l, "8:0", "8:16")
		if held := g.byDisk(); len(held) != 2 || held["8:0"] != l || held["8:16"] != l {
			t.Errorf("held are %v", held)
		}
		if got := g.inForce(diskio.Limits{}); got != l {
			t.Errorf("instead of none it has %v", got)
		}
		if held, ok := g.Group.InForce(site.Limits{}); ok || held.Disk != l {
			t.Errorf("no limits: %+v %t", held, ok)
		}
		write(diskio.Limits{}, "8:0")
		if got := g.inForce(diskio.Limits{}); got != (diskio.Limits{}) {
			t.Errorf("without limits it has %v", got)
		}
		if len(disks()) > 0 {
			if got := g.inForce(l); got != (diskio.Limits{}) {
				t.Errorf("a disk of the host has no limits, and %v are in force", got)
			}
			write(l, disks()...)
			if got := g.inForce(l); got != l && os.Getuid() == 0 {
				t.Errorf("got %v", got)
			}
		}
	}
	for _, line := range []string{"", "8:0", "x", "8:0 rbps"} {
		if _, l, _ := parseIOMax(line); l != (diskio.Limits{}) {
			t.Errorf("%q is read as %v", line, l)
		}
	}
	none := mountPoint(t.TempDir())
	if none.lacksDiskLimits() == (observe.Missing{}) {
		t.Error("a host without controllers can limit disks")
	}
}
