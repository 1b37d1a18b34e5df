package xen

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/guest/boot"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// TestConfigOfDrives: what a node with disks of its own is given, whole, of each type: nothing but its root and those.
func TestConfigOfDrives(t *testing.T) {
	for _, kind := range site.XenTypes {
		n, d := aNode(), aDomain()
		n.Xen.Type = kind
		d.drives = []drive{{"xvde", "/dev/fdset/20", "qcow2"}, {"xvdf", "/dev/fdset/21", "raw"}, {"xvdg", "/dev/dm-3", ""}}
		got, err := d.config(n)
		must(t, err)
		path := filepath.Join("testdata", "drives-"+kind+".cfg")
		if *update {
			must(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v, got\n%s", path, err, got)
		}
	}
}

// withDisks is a node that has disks, on a host whose toolstack is a script.
func withDisks(t *testing.T, disks ...site.Drive) (*Engine, machine, *nodedir.Record) {
	t.Helper()
	e, m, _ := ground(t, "exit 1")
	r, err := m.Read()
	must(t, err)
	r.VM.Disks = disks
	must(t, m.Write(r))
	must(t, os.MkdirAll(m.Private(), 0o755))
	must(t, m.MakeHold())
	for _, d := range disks {
		if !d.IsDevice() {
			must(t, m.Disk(d).Make(t.Context(), false))
		}
	}
	return e, m, r
}

// TestAddDisks: QEMU finds files open, by sets, and sees no name of the host; the guest is told which disk is which.
func TestAddDisks(t *testing.T) {
	e, m, r := withDisks(t, site.Drive{Name: "data", Disk: site.QCow2, Size: 64 << 20}, site.Drive{Name: "log", Disk: site.RawFile, Size: 64 << 20})
	f := &foundation{domain: *aDomain()}
	must(t, f.addDisks(m, r))
	if want := []drive{{"xvde", "/dev/fdset/20", "qcow2"}, {"xvdf", "/dev/fdset/21", "raw"}}; !slices.Equal(f.drives, want) {
		t.Errorf("the toolstack is told %v", f.drives)
	}
	data, log := filepath.Join(m.Disks(), "data.qcow2"), filepath.Join(m.Disks(), "log.raw")
	if want := []confine.Opened{{Path: data, Set: 20, Writes: true}, {Path: log, Set: 21, Writes: true}}; !slices.Equal(f.backend.Files, want) || len(f.short) > 0 {
		t.Errorf("QEMU finds open %v; short are %v", f.backend.Files, f.short)
	}
	must(t, e.tellDisks(m, r))
	file := filepath.Join(e.Dirs.Etc(m.Ref.Site, m.Ref.ID), filepath.Base(boot.DrivesFile))
	text, err := os.ReadFile(file)
	must(t, err)
	var told []boot.Drive
	if err := json.Unmarshal(text, &told); err != nil || !slices.Equal(told, []boot.Drive{{Device: "xvde", Name: "data"}, {Device: "xvdf", Name: "log"}}) {
		t.Errorf("the guest is told %s, %v", text, err)
	}
	r.VM.Disks = nil
	must(t, e.tellDisks(m, r))
	if exists(file) {
		t.Error("a guest that has no disks any more is told of some")
	}
}

// TestAddDisksLooks: a disk is looked at each time that a domain is to have it: what a guest has made of it is refused, and one that is to be larger becomes so.
func TestAddDisksLooks(t *testing.T) {
	_, m, r := withDisks(t, site.Drive{Name: "data", Disk: site.QCow2, Size: 64 << 20}, site.Drive{Name: "log", Disk: site.RawFile, Size: 64 << 20})
	r.VM.Disks[0].Size, r.VM.Disks[1].Size = 128<<20, 128<<20
	f := &foundation{domain: *aDomain()}
	must(t, f.addDisks(m, r))
	if info, err := os.Stat(filepath.Join(m.Disks(), "log.raw")); err != nil || info.Size() != 128<<20 || !slices.Equal(f.short, []int{0}) {
		t.Errorf("%v, %v; QEMU is to make larger %v", info.Size(), err, f.short)
	}
	if err := f.growImages(t.Context(), m, r.VM.Drives()); err == nil { // the domain is not there
		t.Error("it became larger without QEMU")
	}
	for what, harm := range map[string]struct {
		do   func(path string) error
		want string
	}{
		"a link":       {func(path string) error { _ = os.Remove(path); return os.Symlink("/etc/passwd", path) }, "cannot be opened"},
		"backing file": {func(path string) error { return patch(path, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 11) }, "backing file"},
		"gone":         {os.Remove, "not there"},
	} {
		_, m, r := withDisks(t, site.Drive{Name: "data", Disk: site.QCow2, Size: 64 << 20})
		must(t, harm.do(filepath.Join(m.Disks(), "data.qcow2")))
		f := &foundation{domain: *aDomain()}
		if err := f.addDisks(m, r); err == nil || !strings.Contains(err.Error(), harm.want) || len(f.backend.Files) > 0 {
			t.Errorf("%s: %v, and QEMU finds open %v", what, err, f.backend.Files)
		}
	}
	_, m, r = withDisks(t, site.Drive{Name: "part", Disk: "/dev/null"})
	if err := (&foundation{}).addDisks(m, r); problem.Exit(err) != int(problem.Failed) || !strings.Contains(err.Error(), "no block device") {
		t.Errorf("a device that is none: %v", err)
	}
}

func patch(path string, at int64, bytes ...byte) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(bytes, at)
	return err
}

// TestCover: what hides the disks is an empty directory beside them, whatever link the guest has put there.
func TestCover(t *testing.T) {
	_, m, _ := withDisks(t)
	bind, err := m.cover("/root")
	if err != nil || bind.Source != "/root/"+vm.Hold+"/empty" || bind.Target != "/"+vm.Hold || !bind.ReadOnly {
		t.Errorf("%+v, %v", bind, err)
	}
	must(t, os.Remove(filepath.Join(m.Disks(), "empty")))
	must(t, os.Symlink("/etc", filepath.Join(m.Disks(), "empty")))
	if _, err := m.cover("/root"); err == nil {
		t.Error("a link is followed")
	}
}
