package kvm

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/engine/kvm/record"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// bootSector prints a line on the first serial port, and then counts in its second sector. At each
// tick of the clock it reads the count from disk, increments it and prints a dot. It prints X if
// the count read differs from that in memory, and E if there is an error.
var bootSector = append([]byte{
	0xfc, 0x31, 0xc0, 0x8e, 0xd8, 0x8e, 0xd0, 0xbc, 0x00, 0x7c, 0xbe, 0x79, 0x7c, // ds = ss = 0; sp = 0x7c00; si = text
	0xac, 0x84, 0xc0, 0x74, 0x06, 0xba, 0xf8, 0x03, 0xee, 0xeb, 0xf5, // while (al = *si++) out 0x3f8, al
	0xb4, 0x42, 0xbe, 0x59, 0x7c, 0xb2, 0x80, 0xcd, 0x13, 0x72, 0x2e, // read mine, or E
	0xfb, 0xf4, // tick: sti; hlt
	0xb4, 0x42, 0xbe, 0x69, 0x7c, 0xb2, 0x80, 0xcd, 0x13, 0x72, 0x21, // read disk, or E
	0xa1, 0x00, 0x80, 0x3b, 0x06, 0x00, 0x7e, 0x75, 0x14, // if (disk != mine) X
	0xff, 0x06, 0x00, 0x7e, // mine++
	0xb8, 0x00, 0x43, 0xbe, 0x59, 0x7c, 0xb2, 0x80, 0xcd, 0x13, 0x72, 0x08, // write mine, or E
	0xb0, 0x2e, 0xeb, 0x06, // al = '.'
	0xb0, 0x58, 0xeb, 0x02, // X: al = 'X'
	0xb0, 0x45, // E: al = 'E'
	0xba, 0xf8, 0x03, 0xee, 0xeb, 0xca, // out 0x3f8, al; tick
	// where mine is read to and written from: 0x7e00
	0x10, 0x00, 0x01, 0x00, 0x00, 0x7e, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x10, 0x00, 0x01, 0x00, 0x00, 0x80, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // and disk: 0x8000
}, "booted from the disk\r\n\x00"...)

// disks returns an engine whose store has a disk image, and a function that returns specs of nodes.
func disks(t *testing.T, content []byte) (*Engine, func(name string, id int) *spec.Node) {
	t.Helper()
	need.Integration(t)
	need.Guest(t)
	dirs := enginetest.DirsOf("disks")
	store := image.Open(dirs.State)
	e := New(dirs, store)
	enginetest.Clean(t, e, dirs)
	file := filepath.Join(dirs.State, "some.img")
	must(t, os.WriteFile(file, content, 0o600))
	img := site.Image{Name: "some", Import: file, Stamp: "1", Guest: site.NoGuest}
	base := spec.Base(site.Mirror{}, img)
	must(t, store.BuildBase(t.Context(), base, site.Mirror{}, func(string) {}))
	return e, func(name string, id int) *spec.Node {
		return &spec.Node{
			Site: "it-disks", Name: name, ID: id, Engine: Name, MachineID: site.MachineID("it-disks", name), Base: base.Digest,
			Disk: img.Disk(), Limits: site.Limits{Memory: 128 << 20},
		}
	}
}

// bootable returns a disk image that both a BIOS and UEFI can boot. Each boots another program.
func bootable() []byte {
	const start, sectors = 64, 1984
	disk := make([]byte, 1<<20)
	copy(disk, bootSector)
	part := disk[446:]
	part[4] = 0xef // an EFI system partition
	binary.LittleEndian.PutUint32(part[8:], start)
	binary.LittleEndian.PutUint32(part[12:], sectors)
	disk[510], disk[511] = 0x55, 0xaa
	copy(disk[start<<9:], efiSystemPartition(start, sectors))
	return disk
}

// TestDiskWithoutGuest: a machine with an unknown system boots its disk and can be frozen. It is
// switched off although it ignores its power button, and can be replaced and restored.
//
// Promise (What others print and answer): QEMU listens at no port for a screen. The viewer's socket
// lets in its caller and root, and is gone with the command. A picture has only pixels, read within
// limits. With control/nodes.TestListenForCaller, engine/kvm.TestPicture,
// engine/kvm.TestPictureLies.
func TestDiskWithoutGuest(t *testing.T) {
	e, node := disks(t, bootable())
	n, other := node("one", 1), node("two", 2)
	other.Disk.Firmware = site.UEFI
	ref := engine.RefOf(n)
	m := e.machine(ref)
	must(t, e.Create(t.Context(), n))
	must(t, e.Create(t.Context(), other))
	must(t, e.Start(t.Context(), ref))
	must(t, e.Start(t.Context(), engine.RefOf(other))) // with the same image at the same time
	awaitPrinted(t, m, "booted from the disk")
	if err := e.Runner(ref).Run(t.Context(),
		host.Command{Args: []string{"true"}}); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "is unknown") {
		t.Errorf("%v", err)
	}
	e.shows(t, ref)
	awaitPrinted(t, e.machine(engine.RefOf(other)), "started by UEFI")
	e.goesOver(t, ref)
	must(t, e.Freeze(t.Context(), ref))
	if _, err := e.Screen(ref).Picture(t.Context()); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "is frozen") {
		t.Errorf("%v", err)
	}
	must(t, e.Thaw(t.Context(), ref))
	for _, r := range []engine.Ref{ref, engine.RefOf(other)} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		must(t, e.Stop(ctx, r))
		cancel()
	}
	e.keepsVariables(t, other)
	for of, want := range map[string]string{m.console(): "....",
		e.machine(engine.RefOf(other)).console(): "started by UEFI"} {
		if text, err := os.ReadFile(of); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %q, %v", of, text, err)
		}
	}
	all, err := e.List(t.Context(), ref.Site)
	must(t, err)
	for _, n := range all {
		if n.State != observe.Stopped {
			t.Errorf("%s is %s", n.Name, n.State)
		}
	}
	mark := filepath.Join(e.Private(ref), "mark")
	must(t, os.WriteFile(mark, nil, 0o600))
	must(t, e.Replace(t.Context(), n))
	if _, err := os.Stat(mark); err == nil || !m.HasDisk() {
		t.Error("it is not new")
	}
	must(t, e.Restore(t.Context(), ref))
	if _, err := os.Stat(mark); err != nil || !m.HasDisk() {
		t.Errorf("it has not come back: %v", err)
	}
	if err := e.Inject(t.Context(), ref, host.File{Path: "/etc/x"}); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("%v", err)
	}
}

// goesOver moves a machine to another QEMU, and then starts it from saved memory and the disk of
// that time. All the time, the count on disk is the count in memory.
func (e *Engine) goesOver(t *testing.T, ref engine.Ref) {
	t.Helper()
	m := e.machine(ref)
	before := m.qemu()
	how, err := e.LiveUpgrade(t.Context(), ref)
	must(t, err)
	t.Logf("downtime %v, altogether %v, %d bytes", how.Downtime, how.Took, how.Bytes)
	if m.qemu() == before || len(otherRecorders(m.Group())) != 1 || findRecorder(m.Group()) == 0 {
		t.Errorf("QEMU was %d and is %d of %v", before, m.qemu(), m.Group().Processes())
	}
	counts(t, m)
	memory, disk := filepath.Join(t.TempDir(), "memory"), filepath.Join(e.Private(ref), "disk.qcow2")
	must(t, e.Freeze(t.Context(), ref))
	must(t, e.SaveMemory(t.Context(), ref, memory))
	then, err := os.ReadFile(disk)
	must(t, err)
	must(t, e.Thaw(t.Context(), ref))
	counts(t, m)
	must(t, m.Group().Kill(t.Context()))
	must(t, os.WriteFile(disk, then, 0o600))
	must(t, e.ResumeFrom(ref, memory))
	must(t, e.Start(t.Context(), ref))
	counts(t, m)
	if text := printed(t, m); strings.Contains(text, "booted") {
		t.Errorf("it has booted: %q", text)
	}
}

// counts waits until a machine has counted on, and checks that it has not found a different count
// on disk.
func counts(t *testing.T, m machine) {
	t.Helper()
	before := strings.Count(printed(t, m), ".")
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		text := printed(t, m)
		if strings.ContainsAny(text, "XE") {
			t.Fatalf("it does not find what it has written: %q", text)
		}
		if strings.Count(text, ".") > before+3 {
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("it does not go on: %q", text)
		}
	}
}

// printed returns what a running machine has printed on its console.
func printed(t *testing.T, m machine) string {
	t.Helper()
	text, err := record.Read(m.Run)
	must(t, err)
	return string(text)
}

// awaitPrinted waits until a guest has printed a text on its console.
func awaitPrinted(t *testing.T, m machine, want string) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		text := printed(t, m)
		if strings.Contains(text, want) {
			return
		}
		if time.Since(begun) > 4*time.Minute {
			t.Fatalf("%s does not boot: %q", m.Ref.Name, text)
		}
	}
}

// keepsVariables checks that each node has firmware variables of its own, and that the host's
// firmware files do not change.
func (e *Engine) keepsVariables(t *testing.T, n *spec.Node) {
	t.Helper()
	template, err := os.ReadFile("/usr/share/OVMF/OVMF_VARS_4M.fd")
	must(t, err)
	vars, err := os.ReadFile(filepath.Join(e.Private(engine.RefOf(n)), "vars.fd"))
	must(t, err)
	if len(vars) != len(template) || bytes.Equal(vars, template) {
		t.Errorf("of %d bytes it has kept %d, and nothing of what it boots", len(template), len(vars))
	}
}

// TestDamagedDisk: a disk that QEMU may have damaged is checked before the next QEMU gets it.
func TestDamagedDisk(t *testing.T) {
	e, node := disks(t, bootable())
	n := node("one", 1)
	ref := engine.RefOf(n)
	must(t, e.Create(t.Context(), n))
	at := filepath.Join(e.Private(ref), "disk.qcow2")
	text, err := os.ReadFile(at)
	must(t, err)
	text[15], text[19] = 112, 11
	copy(text[112:], "/etc/shadow")
	must(t, os.WriteFile(at, text, 0o600))
	if err := e.Start(t.Context(), ref); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "backing file") {
		t.Errorf("%v", err)
	}
	must(t, os.Remove(at))
	must(t, os.Symlink("/etc/shadow", at))
	if err := e.Start(t.Context(), ref); err == nil {
		t.Error("it boots a file of the host")
	}
	uefi := node("two", 2)
	uefi.Disk.Firmware = site.UEFI
	if err := e.Create(t.Context(), uefi); err != nil &&
		(problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), "ovmf")) {
		t.Errorf("%v", err)
	}
}
