package kvm

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// bootSector prints a line on the first serial port, and halts for ever.
var bootSector = append([]byte{
	0xfc, 0x31, 0xc0, 0x8e, 0xd8, // cld; ds = 0
	0xbe, 0x16, 0x7c, // si = text
	0xac, 0x84, 0xc0, 0x74, 0x06, // while (al = *si++)
	0xba, 0xf8, 0x03, 0xee, 0xeb, 0xf5, // out 0x3f8, al
	0xf4, 0xeb, 0xfd, // hlt
}, "booted from the disk\r\n\x00"...)

// disks is an engine with a store that has a disk image.
func disks(t *testing.T, content []byte) (*Engine, func(name string, id int) *spec.Node) {
	t.Helper()
	need.Integration(t)
	need.Guest(t)
	state, err := os.MkdirTemp("/var/tmp", "orrery-disks-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(state)) })
	dirs := host.Dirs{State: state, Run: "/run/orrery-test-disks"}
	store := image.Open(state)
	e := New(dirs, store)
	t.Cleanup(func() {
		nodes, err := e.List(context.Background(), "")
		must(t, err)
		for i := range nodes {
			must(t, e.Destroy(context.Background(), engine.RefOf(&nodes[i].Node)))
		}
		must(t, os.RemoveAll(dirs.Run))
	})
	file := filepath.Join(state, "some.img")
	must(t, os.WriteFile(file, content, 0o600))
	img := site.Image{Name: "some", Import: file, Stamp: "1", Guest: site.NoGuest}
	base := spec.Base(site.Mirror{}, img)
	must(t, store.BuildBase(t.Context(), base, site.Mirror{}, func(string) {}))
	return e, func(name string, id int) *spec.Node {
		return &spec.Node{
			Site: "it-disks", Name: name, ID: id, Engine: Name, MachineID: site.MachineID("it-disks", name), Base: base.Digest, Disk: img.Disk(), Limits: site.Limits{Memory: 128 << 20},
		}
	}
}

func sector() []byte {
	disk := make([]byte, 1<<20)
	copy(disk, bootSector)
	disk[510], disk[511] = 0x55, 0xaa
	return disk
}

// TestDiskWithoutGuest: a machine of whose system nothing is known boots its disk, is frozen, is switched off though it does not feel its power button, and is kept and put back.
func TestDiskWithoutGuest(t *testing.T) {
	e, node := disks(t, sector())
	n, other := node("one", 1), node("two", 2)
	ref := engine.RefOf(n)
	m := e.machine(ref)
	must(t, e.Create(t.Context(), n))
	must(t, e.Create(t.Context(), other))
	must(t, e.Start(t.Context(), ref))
	must(t, e.Start(t.Context(), engine.RefOf(other))) // of the same image, at the same time
	record, err := m.record()
	must(t, err)
	defer record.Close()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		text, err := io.ReadAll(io.NewSectionReader(record, 0, mostConsole))
		must(t, err)
		if strings.Contains(string(text), "booted from the disk") {
			break
		}
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("it does not boot: %q", text)
		}
	}
	if err := e.Runner(ref).Run(t.Context(), host.Command{Args: []string{"true"}}); problem.Exit(err) != int(problem.Unable) || !strings.Contains(err.Error(), "nothing is known") {
		t.Errorf("%v", err)
	}
	must(t, e.Freeze(t.Context(), ref))
	must(t, e.Thaw(t.Context(), ref))
	for _, r := range []engine.Ref{ref, engine.RefOf(other)} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		must(t, e.Stop(ctx, r))
		cancel()
	}
	if text, err := os.ReadFile(m.console()); err != nil || !strings.Contains(string(text), "booted from the disk") {
		t.Errorf("%q, %v", text, err)
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
	if err := e.Inject(t.Context(), ref, host.File{Path: "/etc/x"}); problem.Exit(err) != int(problem.Unable) {
		t.Errorf("%v", err)
	}
}

// TestDamagedDisk: what QEMU may have made of a disk is looked at before the next has it.
func TestDamagedDisk(t *testing.T) {
	e, node := disks(t, sector())
	n := node("one", 1)
	ref := engine.RefOf(n)
	must(t, e.Create(t.Context(), n))
	at := filepath.Join(e.Private(ref), "disk.qcow2")
	text, err := os.ReadFile(at)
	must(t, err)
	text[15], text[19] = 112, 11
	copy(text[112:], "/etc/shadow")
	must(t, os.WriteFile(at, text, 0o600))
	if err := e.Start(t.Context(), ref); problem.Exit(err) != int(problem.Failed) || !strings.Contains(err.Error(), "backing file") {
		t.Errorf("%v", err)
	}
	must(t, os.Remove(at))
	must(t, os.Symlink("/etc/shadow", at))
	if err := e.Start(t.Context(), ref); err == nil {
		t.Error("it boots a file of the host")
	}
	uefi := node("two", 2)
	uefi.Disk.Firmware = site.UEFI
	if err := e.Create(t.Context(), uefi); err != nil && (problem.Exit(err) != int(problem.Unable) || !strings.Contains(err.Error(), "ovmf")) {
		t.Errorf("%v", err)
	}
}
