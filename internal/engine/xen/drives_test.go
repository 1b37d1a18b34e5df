package xen

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/confine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/guest/boot"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/test/need"
)

// TestConfigOfDrives: the complete configuration of a node with disks of its own, for each type. It
// gives access to nothing but the root and the disks.
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

// withDisks returns a node with disks, on a host whose toolstack is a script.
func withDisks(t *testing.T, disks ...site.Drive) (*Engine, machine, *nodedir.Record) {
	t.Helper()
	e, m, _ := ground(t, "exit 1")
	r, err := m.Read()
	must(t, err)
	r.VM.Disks = disks
	must(t, m.Write(r))
	must(t, os.MkdirAll(m.Private(), 0o755))
	must(t, m.CreateDiskDir())
	for _, d := range disks {
		if !d.IsDevice() {
			must(t, m.Disk(d).Provide(t.Context(), false))
		}
	}
	return e, m, r
}

// TestAddDisks: QEMU receives files open, in fdsets, and sees no path of the host. The guest gets
// the names of its disks.
func TestAddDisks(t *testing.T) {
	e, m, r := withDisks(t, site.Drive{Name: "data", Disk: site.QCow2, Size: 64 << 20},
		site.Drive{Name: "log", Disk: site.RawFile, Size: 64 << 20})
	f := &environment{domain: *aDomain()}
	must(t, f.addDisks(m, r))
	if want := []drive{{"xvde", "/dev/fdset/20", "qcow2"}, {"xvdf", "/dev/fdset/21", "raw"}}; !slices.Equal(f.drives,
		want) {
		t.Errorf("the toolstack is told %v", f.drives)
	}
	data, log := filepath.Join(m.Disks(), "data.qcow2"), filepath.Join(m.Disks(), "log.raw")
	if want := []confine.FDSetFile{{Path: data, Set: 20, Writes: true},
		{Path: log, Set: 21, Writes: true}}; !slices.Equal(f.backend.Files, want) || len(f.short) > 0 {
		t.Errorf("QEMU finds open %v; short are %v", f.backend.Files, f.short)
	}
	must(t, writeDiskNames(e.Dirs, m, r))
	file := filepath.Join(e.Dirs.Etc(m.Ref.Site, m.Ref.ID), filepath.Base(boot.DrivesFile))
	text, err := os.ReadFile(file)
	must(t, err)
	var told []boot.Drive
	if err := json.Unmarshal(text, &told); err != nil ||
		!slices.Equal(told, []boot.Drive{{Device: "xvde", Name: "data"}, {Device: "xvdf", Name: "log"}}) {
		t.Errorf("the guest is told %s, %v", text, err)
	}
	r.VM.Disks = nil
	must(t, writeDiskNames(e.Dirs, m, r))
	if exists(file) {
		t.Error("a guest that has no disks any more is told of some")
	}
}

// TestAddDisksLooks: disks are checked before each start of a domain. A disk that a guest has
// damaged is refused, and one that must be larger grows.
func TestAddDisksLooks(t *testing.T) {
	_, m, r := withDisks(t, site.Drive{Name: "data", Disk: site.QCow2, Size: 64 << 20},
		site.Drive{Name: "log", Disk: site.RawFile, Size: 64 << 20})
	r.VM.Disks[0].Size, r.VM.Disks[1].Size = 128<<20, 128<<20
	f := &environment{domain: *aDomain()}
	must(t, f.addDisks(m, r))
	if info, err := os.Stat(filepath.Join(m.Disks(), "log.raw")); err != nil || info.Size() != 128<<20 ||
		!slices.Equal(f.short, []int{0}) {
		t.Errorf("%v, %v; QEMU is to make larger %v", info.Size(), err, f.short)
	}
	if err := f.growImages(t.Context(), m, r.VM.Drives()); err == nil { // the domain does not exist
		t.Error("it became larger without QEMU")
	}
	for what, harm := range map[string]struct {
		do   func(path string) error
		want string
	}{
		"a link": {func(path string) error { _ = os.Remove(path); return os.Symlink("/etc/passwd", path) },
			"cannot be opened"},
		"backing file": {func(path string) error { return patch(path, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 11) },
			"backing file"},
		"gone": {os.Remove, "does not exist"},
	} {
		_, m, r := withDisks(t, site.Drive{Name: "data", Disk: site.QCow2, Size: 64 << 20})
		must(t, harm.do(filepath.Join(m.Disks(), "data.qcow2")))
		f := &environment{domain: *aDomain()}
		if err := f.addDisks(m, r); err == nil || !strings.Contains(err.Error(), harm.want) || len(f.backend.Files) > 0 {
			t.Errorf("%s: %v, and QEMU finds open %v", what, err, f.backend.Files)
		}
	}
	_, m, r = withDisks(t, site.Drive{Name: "part", Disk: "/dev/null"})
	if err := (&environment{}).addDisks(m, r); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "is not a block device") {
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

// TestCover: the directory that hides the disks is an empty one beside them, whatever link the
// guest has put there.
func TestCover(t *testing.T) {
	_, m, _ := withDisks(t)
	bind, err := m.diskDirCover("/root")
	if err != nil || bind.Source != "/root/"+vm.DiskDir+"/empty" || bind.Target != "/"+vm.DiskDir || !bind.ReadOnly {
		t.Errorf("%+v, %v", bind, err)
	}
	must(t, os.Remove(filepath.Join(m.Disks(), "empty")))
	must(t, os.Symlink("/etc", filepath.Join(m.Disks(), "empty")))
	if _, err := m.diskDirCover("/root"); err == nil {
		t.Error("a link is followed")
	}
}

// disksOfGuests: the QEMU of a guest has only the guest's disks open for writing. The guest gets
// their names, and sees none of their files. The disks stay when the guest stops.
func disksOfGuests(t *testing.T, w world) {
	need.Program(t, "qemu-img")
	n := w.Node("disks", 31)
	n.VM.Disks = []site.Drive{{Name: "data", Disk: site.QCow2, Size: 64 << 20},
		{Name: "log", Disk: site.RawFile, Size: 64 << 20}}
	ref := engine.RefOf(n)
	m := w.machine(ref)
	must(t, w.Create(t.Context(), n))
	t.Cleanup(func() { must(t, w.Destroy(context.Background(), ref)) })
	must(t, w.Start(t.Context(), ref))
	out, err := host.Output(t.Context(), w.Runner(ref),
		host.Command{Args: []string{"sh", "-ec",
			"cat /etc/orrery/.drives.json; ls -A /.orrery-disks; ! touch /.orrery-disks/new 2>/dev/null"}}, 1<<16)
	if want := `[{"device":"xvde","name":"data"},{"device":"xvdf","name":"log"}]`; err != nil || string(out) != want {
		t.Errorf("the guest finds %s, %v", out, err)
	}
	wantHanded(t, m, "data.qcow2", "log.raw")
	sets, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/dev/fdset", m.backend()))
	if err != nil || len(sets) != 2 || sets[0].Name() != "20" || sets[1].Name() != "21" {
		t.Errorf("by name it finds %v, %v", sets, err)
	}
	w.reboot(t, ref)
	wantHanded(t, m, "data.qcow2", "log.raw")

	changed := *n
	changed.VM.Disks = changed.VM.Disks[1:]
	if err := w.Change(t.Context(), &changed); problem.ExitCode(err) != int(problem.Surprise) {
		t.Errorf("they change while it runs: %v", err)
	}
	must(t, w.Stop(t.Context(), ref))
	must(t, os.WriteFile(filepath.Join(m.Disks(), "log.raw"), []byte("kept"), 0o600))
	changed.VM.Disks[0].Size = 128 << 20
	must(t, w.Change(t.Context(), &changed))
	must(t, w.Start(t.Context(), ref))
	wantHanded(t, m, "log.raw")
	text, err := os.ReadFile(filepath.Join(m.Disks(), "log.raw"))
	if must(t, err); len(text) != 128<<20 || string(text[:4]) != "kept" {
		t.Errorf("it has %d bytes that begin with %q", len(text), text[:4])
	}
}

// wantHanded wants that the QEMU of a node has these files of its disks open for writing, and no others.
func wantHanded(t *testing.T, m machine, names ...string) {
	t.Helper()
	at := fmt.Sprintf("/proc/%d", m.backend())
	open, err := os.ReadDir(at + "/fd")
	must(t, err)
	var got []string
	for _, fd := range open {
		path, _ := os.Readlink(at + "/fd/" + fd.Name())
		if !strings.Contains(path, vm.DiskDir) && filepath.Dir(path) != "/" ||
			!slices.Contains([]string{".qcow2", ".raw"}, filepath.Ext(path)) {
			continue
		}
		how, err := os.ReadFile(at + "/fdinfo/" + fd.Name())
		must(t, err)
		var position, flags int
		if _, err := fmt.Sscanf(string(how), "pos:\t%d\nflags:\t%o", &position, &flags); err != nil ||
			flags&unix.O_ACCMODE != unix.O_RDWR {
			t.Errorf("%s is open as %q, %v", path, how, err)
		}
		got = append(got, filepath.Base(path))
	}
	if slices.Sort(got); !slices.Equal(got, names) {
		t.Errorf("QEMU has open %v, not %v", got, names)
	}
}
