package disk

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/confine"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/devices"
	"orrery/internal/problem"
	"orrery/internal/site"
	hostdevice "orrery/internal/site/device"
	"orrery/test/need"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func some(t *testing.T, kind string, size int64) *Disk {
	t.Helper()
	return Of("db", t.TempDir(), site.Drive{Name: "data", Disk: kind, Size: size})
}

// on returns how many bytes a file occupies on the host.
func on(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	return st.Blocks * 512
}

// TestMake: a file has the declared size, and occupies next to nothing. It is made only once.
func TestMake(t *testing.T) {
	for _, kind := range []string{site.QCow2, site.RawFile} {
		d := some(t, kind, 1<<30)
		must(t, d.Provide(t.Context(), false))
		f, err := d.Open()
		must(t, err)
		must(t, f.Close())
		if takes := on(t, d.Path); takes > 1<<20 {
			t.Errorf("%s: an empty disk takes %d bytes", kind, takes)
		}
		must(t, os.WriteFile(d.Path, []byte("what a guest wrote"), 0o600))
		must(t, d.Provide(t.Context(), false))
		if text, _ := os.ReadFile(d.Path); string(text) != "what a guest wrote" {
			t.Errorf("%s: it was made anew", kind)
		}
	}
}

// TestMakeWhereLinksAre: links that a guest has put in the place of its disks are not followed.
func TestMakeWhereLinksAre(t *testing.T) {
	for _, kind := range []string{site.QCow2, site.RawFile} {
		for _, filesystem := range []bool{false, true} {
			if filesystem {
				need.Program(t, qemuImg.name)
				need.Program(t, mke2fs.name)
			}
			d := some(t, kind, 1<<26)
			victim := filepath.Join(t.TempDir(), "victim")
			must(t, os.WriteFile(victim, []byte("of the host"), 0o600))
			for _, name := range []string{".new", ".new.raw"} {
				must(t, os.Symlink(victim, d.Path+name))
			}
			must(t, d.Provide(t.Context(), filesystem))
			if text, _ := os.ReadFile(victim); string(text) != "of the host" {
				t.Errorf("%s, with a file system %t: a file of the host is written to", kind, filesystem)
			}
			if info, err := os.Lstat(d.Path); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %v, %v", kind, info, err)
			}
		}
	}
}

// TestMakeFilesystem: a disk with a file system is sparse, too, and leftovers of a killed run are
// removed.
func TestMakeFilesystem(t *testing.T) {
	need.Program(t, qemuImg.name)
	need.Program(t, mke2fs.name)
	for _, kind := range []string{site.QCow2, site.RawFile} {
		d := some(t, kind, 1<<30)
		must(t, os.WriteFile(d.Path+".new", []byte("half"), 0o600))
		must(t, d.Provide(t.Context(), true))
		if takes := on(t, d.Path); takes > 4<<20 {
			t.Errorf("%s: an empty file system takes %d bytes", kind, takes)
		}
		raw := d.Path
		if kind == site.QCow2 {
			raw = filepath.Join(t.TempDir(), "raw")
			must(t, exec.Command("qemu-img", "convert", "-f", "qcow2", "-O", "raw", d.Path, raw).Run()) //nolint:gosec // a test
		}
		if out, err := exec.Command("e2fsck", "-fn", raw).CombinedOutput(); err != nil { //nolint:gosec // a test
			t.Errorf("%s: %v\n%s", kind, err, out)
		}
		entries, err := os.ReadDir(filepath.Dir(d.Path))
		if must(t, err); len(entries) != 2 { // the disk, and its mark
			t.Errorf("%s: left are %v", kind, entries)
		}
	}
}

// TestMissingPrograms: the error for a missing program names its package.
func TestMissingPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	d := some(t, site.RawFile, 1<<26)
	if err := d.Provide(t.Context(), true); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "mke2fs") || !strings.Contains(err.Error(), "e2fsprogs") {
		t.Error(err)
	}
	d = some(t, site.QCow2, 1<<26)
	must(t, d.Provide(t.Context(), false))
	if err := d.Check(t.Context(), confine.Sandbox{},
		cgroup.OfNode("it-disk", 1)); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "qemu-utils") {
		t.Error(err)
	}
}

// TestRefused: QEMU does not get damaged or foreign disks.
func TestRefused(t *testing.T) {
	patch := func(at int64, bytes ...byte) func(*testing.T, *Disk) {
		return func(t *testing.T, d *Disk) {
			f, err := os.OpenFile(d.Path, os.O_RDWR, 0)
			must(t, err)
			_, err = f.WriteAt(bytes, at)
			must(t, err)
			must(t, f.Close())
		}
	}
	for what, try := range map[string]struct {
		kind string
		harm func(*testing.T, *Disk)
		want string
	}{
		"a backing file": {site.QCow2,
			patch(8, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, 512), 11)...), "backing file"},
		"data in a file":      {site.QCow2, patch(79, 1<<2), "another file"},
		"known to be damaged": {site.QCow2, patch(79, 1<<1), "damaged"},
		"cut off":             {site.QCow2, func(t *testing.T, d *Disk) { must(t, os.Truncate(d.Path, 100<<10)) }, "tables"},
		"another format": {site.QCow2, func(t *testing.T, d *Disk) {
			must(t, os.WriteFile(d.Path, make([]byte, 4096), 0o600))
		}, "not a qcow2 image"},
		"gone": {site.RawFile, func(t *testing.T, d *Disk) { must(t, os.Remove(d.Path)) }, "does not exist"},
		"a link": {site.RawFile, func(t *testing.T, d *Disk) {
			must(t, os.Remove(d.Path))
			must(t, os.Symlink("/etc/passwd", d.Path))
		}, "cannot be opened"},
		"no file": {site.RawFile, func(t *testing.T, d *Disk) {
			must(t, os.Remove(d.Path))
			must(t, unix.Mkfifo(d.Path, 0o600))
		}, "is not a regular file"},
	} {
		t.Run(what, func(t *testing.T) {
			d := some(t, try.kind, 1<<26)
			must(t, d.Provide(t.Context(), false))
			try.harm(t, d)
			f, err := d.Open()
			if f != nil || err == nil || !strings.Contains(err.Error(), try.want) || !strings.Contains(err.Error(), "db") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestSizes: disks grow, and never shrink.
func TestSizes(t *testing.T) {
	d := some(t, site.RawFile, 1<<26)
	must(t, d.Provide(t.Context(), false))
	d.Drive.Size = 1 << 27
	f, err := d.Open()
	must(t, err)
	must(t, f.Close())
	if info, err := os.Stat(d.Path); err != nil || info.Size() != 1<<27 {
		t.Errorf("%v, %v", info.Size(), err)
	}
	for _, kind := range []string{site.RawFile, site.QCow2} {
		d = some(t, kind, 1<<27)
		must(t, d.Provide(t.Context(), false))
		d.Drive.Size = 1 << 26
		if _, err := d.Open(); problem.ExitCode(err) != int(problem.Mistake) || !strings.Contains(err.Error(), "128MiB") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestChecking: a larger image has more time.
func TestChecking(t *testing.T) {
	for length, want := range map[int64]time.Duration{0: 20 * time.Second, 1 << 34: 21 * time.Second,
		1 << 40: 81 * time.Second, 1 << 43: 8*time.Minute + 32*time.Second} {
		if got := checkTimeout(length).Round(time.Second); got != want {
			t.Errorf("%d bytes have %v, want %v", length, got, want)
		}
	}
}

// TestCheck: qemu-img, confined and unprivileged, detects an image with damaged tables.
func TestCheck(t *testing.T) {
	need.Integration(t)
	in := cgroup.OfNode("it-disk", 1)
	t.Cleanup(func() { cgroup.Remove(in); cgroup.RemoveEmpty("it-disk") })
	d := some(t, site.QCow2, 1<<26)
	must(t, d.Provide(t.Context(), false))
	cell := confine.Sandbox{At: t.TempDir(), User: 1_900_065_536}
	must(t, d.Check(t.Context(), cell, in))
	f, err := os.OpenFile(d.Path, os.O_RDWR, 0)
	must(t, err)
	// Set the pointer to its first L2 table far beyond the end.
	_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, 1<<63|1<<40), 3<<16)
	must(t, err)
	must(t, f.Close())
	if err := d.Check(t.Context(), cell, in); err == nil || !strings.Contains(err.Error(), "is damaged") ||
		!strings.Contains(err.Error(), "qemu-img check -r all") {
		t.Error(err)
	}
}

// TestDevices: a device with foreign contents is left alone, and so is a device in use. A node
// wipes only its own device.
func TestDevices(t *testing.T) {
	need.Integration(t)
	file := filepath.Join(t.TempDir(), "device")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Truncate(file, 1<<26))
	_, err := os.Stat("/dev/loop-control")
	need.Given(t, "loop devices", err)
	out, err := exec.Command("losetup", "--find", "--show", file).Output() //nolint:gosec // a test
	must(t, err)
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", device).Run() }) //nolint:gosec // a test
	dir := t.TempDir()
	d := Of("db", dir, site.Drive{Name: site.RootDisk, Disk: device})

	must(t, format(t.Context(), device, "precious"))
	if err := d.PrepareRoot(t.Context(), dir); problem.ExitCode(err) != int(problem.Mistake) ||
		!strings.Contains(err.Error(), "ext4 precious") || !strings.Contains(err.Error(), "wipefs -a "+device) {
		t.Errorf("a file system of somebody else: %v", err)
	}
	must(t, d.WipeSignature(t.Context(), dir))
	if content, err := d.signatures(t.Context()); err != nil || content["LABEL"] != "precious" {
		t.Errorf("it has %v, %v", content, err)
	}
	must(t, exec.Command("wipefs", "-qa", device).Run()) //nolint:gosec // a test
	must(t, d.PrepareRoot(t.Context(), dir))
	first, err := d.signatures(t.Context())
	must(t, err)
	must(t, d.PrepareRoot(t.Context(), dir))
	if again, err := d.signatures(t.Context()); err != nil || again["UUID"] != first["UUID"] ||
		first["LABEL"] != site.RootDisk {
		t.Errorf("it was formatted again: %v, %v", again, err)
	}

	f, err := d.Open()
	must(t, err)
	other := Of("web", t.TempDir(), d.Drive)
	if _, err := other.Open(); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("another machine has it: %v", err)
	}
	must(t, f.Close())
	_, err = devices.Local.Claim(t.Context(), "it-disk/1", dir, []hostdevice.Device{{Path: device}})
	must(t, err)
	if _, err := d.Open(); err == nil || !strings.Contains(err.Error(), "used by node it-disk/1") {
		t.Errorf("a container has it: %v", err)
	}
	must(t, devices.Local.Release(t.Context(), "it-disk/1"))
	must(t, d.WipeSignature(t.Context(), dir))
	if content, err := d.signatures(t.Context()); err != nil || len(content) > 0 {
		t.Errorf("left is %v, %v", content, err)
	}
}

// TestGone: a disk that was made and is missing is not made again, because its guest would find it
// empty, unless the user removes the mark.
func TestGone(t *testing.T) {
	for _, kind := range []string{site.QCow2, site.RawFile} {
		d := some(t, kind, 1<<20)
		must(t, d.Provide(t.Context(), false))
		must(t, os.Rename(d.Path, d.Path+".aside"))
		err := d.Provide(t.Context(), false)
		if problem.ExitCode(err) != int(problem.Failed) || !strings.Contains(err.Error(), "is missing") ||
			!strings.Contains(err.Error(), d.Path) {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := os.Lstat(d.Path); err == nil {
			t.Errorf("%s: it was made anew", kind)
		}
		must(t, os.Rename(d.Path+".aside", d.Path))
		must(t, d.Provide(t.Context(), false))
		must(t, os.Remove(d.Path))
		must(t, d.Forget())
		must(t, d.Forget())
		must(t, d.Provide(t.Context(), false))

		// A disk from before there were marks gets its mark.
		must(t, d.Forget())
		must(t, d.Provide(t.Context(), false))
		must(t, os.Remove(d.Path))
		if err := d.Provide(t.Context(), false); err == nil {
			t.Errorf("%s: one of a former version was made anew", kind)
		}
	}
}
