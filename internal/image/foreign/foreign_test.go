package foreign

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// image is a file in memory.
type image []byte

func (i *image) WriteAt(p []byte, at int64) (int, error) {
	if need := int(at) + len(p); need > len(*i) {
		*i = append(*i, make([]byte, need-len(*i))...)
	}
	return copy((*i)[at:], p), nil
}

// blank returns an empty image, changed by change.
func blank(t testing.TB, change func(h *header, all image) image) []byte {
	t.Helper()
	var all image
	if err := CreateEmpty(&all, 1<<30); err != nil {
		t.Fatal(err)
	}
	if change == nil {
		return all
	}
	var h header
	if err := binary.Read(bytes.NewReader(all), binary.BigEndian, &h); err != nil {
		t.Fatal(err)
	}
	all = change(&h, all)
	head, err := binary.Append(nil, binary.BigEndian, h)
	if err != nil {
		t.Fatal(err)
	}
	copy(all, head)
	return all
}

// extended adds an extension to a header.
func extended(kind uint32, text string) func(*header, image) image {
	return func(h *header, all image) image {
		at := h.Length
		binary.BigEndian.PutUint32(all[at:], kind)
		binary.BigEndian.PutUint32(all[at+4:], uint32(len(text)))
		copy(all[at+8:], text)
		return all
	}
}

func set(change func(*header)) func(*header, image) image {
	return func(h *header, all image) image {
		change(h)
		return all
	}
}

// TestInspect: which images are accepted, and which are not, with the remedy.
//
// Promise (Virtual machines): No disk image makes Orrery or QEMU read a file of the host that it
// names, at its import or after a guest wrote to it. With image/foreign.FuzzInspect,
// image.TestDisksOfStrangers, engine/disk.TestRefused, engine/kvm.TestDamagedDisk.
func TestInspect(t *testing.T) {
	sector := make([]byte, 1024)
	for _, try := range []struct {
		name    string
		content []byte
		want    string // the format, or a part of the error
	}{
		{"a.qcow2", blank(t, nil), QCow2},
		{"a.img", blank(t, nil), QCow2},
		{"a.qcow2", blank(t, set(func(h *header) { h.Version = 2 })), QCow2},
		{"a.qcow2", blank(t, set(func(h *header) { h.Incompatible = compression })), QCow2},
		{"a.qcow2", blank(t, extended(0x6803F857, "names of features")), QCow2},
		{"a.raw", sector, Raw},
		{"a.img", sector, Raw},
		{"a.raw", blank(t, nil), "begins like a qcow2 image"},
		{"a.qcow2", sector, "not a qcow2 image"},
		{"a.raw", sector[:1000], "multiple of the sector size"},
		{"a.raw", nil, "multiple of the sector size"},
		{"a.img", append([]byte("KDMV"), sector...), "VMDK"},
		{"a.qcow2", append([]byte("\xfd7zXZ\x00"), sector...), "compressed by xz"},
		{"a.qcow2", blank(t, set(func(h *header) { h.BackingOffset, h.BackingSize = 512, 11 })), "backing file"},
		{"a.qcow2", blank(t, set(func(h *header) { h.BackingOffset = 512 })), "backing file"},
		{"a.qcow2", blank(t, extended(backingFormat, "raw")), "backing file"},
		{"a.qcow2", blank(t, set(func(h *header) { h.Incompatible = external })), "another file"},
		{"a.qcow2", blank(t, extended(dataFile, "/etc/shadow")), "another file"},
		{"a.qcow2", blank(t, set(func(h *header) { h.Crypt = 2 })), "encrypted"},
		{"a.qcow2", blank(t, extended(encryption, "where it is....")), "encrypted"},
		{"a.qcow2", blank(t, set(func(h *header) { h.Incompatible = corrupt })), "damaged"},
		{"a.qcow2", blank(t, set(func(h *header) { h.Incompatible = dirty })), "not closed"},
		{"a.qcow2", blank(t, set(func(h *header) { h.Incompatible = 1 << 20 })), "unknown features"},
		{"a.qcow2", blank(t, set(func(h *header) { h.Version = 4 })), "version 4"},
		{"a.qcow2", blank(t, set(func(h *header) { h.ClusterBits = 63 })), "impossible values"},
		{"a.qcow2", blank(t, set(func(h *header) { h.L1Offset = 1 << 40 })), "tables"},
		{"a.qcow2", blank(t, set(func(h *header) { h.L1Size = 1 })), "tables"},
		{"a.qcow2", blank(t, set(func(h *header) { h.RefcountClusters = 1 << 30 })), "tables"},
		{"a.qcow2", blank(t, set(func(h *header) { h.Size = 1 << 60 })), "TiB"},
		{"a.qcow2", blank(t, set(func(h *header) { h.Snapshots = 1 })), "tables"},
		{"a.qcow2", blank(t, nil)[:3<<16], "tables"},
		{"a.qcow2", blank(t, nil)[:80], "header is cut short"},
		{"a.qcow2", blank(t, nil)[:20], "header is cut short"},
	} {
		d, err := Inspect(try.name, bytes.NewReader(try.content), int64(len(try.content)))
		var refused *InvalidError
		switch {
		case err == nil && d.Format == try.want:
			if d.Format == QCow2 && d.Size != 1<<30 || d.Format == Raw && d.Size != 1024 {
				t.Errorf("%s: %+v", try.name, d)
			}
		case !errors.As(err, &refused) || !strings.Contains(refused.What, try.want) || refused.Cure == "":
			t.Errorf("%s, which should be %q: %v, %v", try.name, try.want, d, err)
		}
	}
}

// FuzzInspect: any image is read within its bounds, and an accepted image names no other file.
func FuzzInspect(f *testing.F) {
	f.Add(blank(f, nil)[:4096])
	f.Add(blank(f, extended(dataFile, "/etc/shadow"))[:4096])
	f.Fuzz(func(t *testing.T, content []byte) {
		d, err := Inspect("a.img", bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return
		}
		if d.Size < 0 || d.Size > maxSize {
			t.Errorf("%+v", d)
		}
		if d.Format == QCow2 && !bytes.Equal(content[8:20], make([]byte, 12)) {
			t.Error("it names a backing file")
		}
	})
}

// TestBlank: a new image takes no disk space, whatever its size.
func TestBlank(t *testing.T) {
	for _, size := range []int64{512, 1 << 29, 3<<30 + 512, 1 << 40} {
		f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := CreateEmpty(f, size); err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		d, err := Inspect("disk.qcow2", f, info.Size())
		if err != nil || d.Size != size || info.Size() > 1<<20 {
			t.Errorf("%d: %+v in %d bytes, %v", size, d, info.Size(), err)
		}
	}
}

// over returns an image on top of another, changed by change.
func over(t testing.TB, format string, change func(image)) []byte {
	t.Helper()
	var all image
	if err := CreateOverlay(&all, 1<<30, format); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(all)
	}
	return all
}

// TestOver: an image whose header QEMU reads names the backing file that CreateOverlay has set, with its
// format, and nothing else.
//
// Promise (Virtual machines): What a guest of Xen made of its disks names no file of the host to
// its QEMU. With engine/confine.TestOpening, engine/confine.TestBackend,
// engine/xen.TestAddDisksLooks, engine/xen.TestCover, engine/xen.TestEngine.
func TestOver(t *testing.T) {
	for _, try := range []struct {
		what    string
		content []byte
		format  string
		refused string
	}{
		{"of raw", over(t, Raw, nil), Raw, ""},
		{"of qcow2", over(t, QCow2, nil), QCow2, ""},
		{"of another format", over(t, Raw, nil), QCow2, "backing file"},
		{"a file of the host", over(t, Raw, func(i image) { copy(i[1024:], "/dev/sda     ") }), Raw, "backing file"},
		{"another set", over(t, Raw, func(i image) { i[1024+len(BackingPath)-1] = '1' }), Raw, "backing file"},
		{"a longer name", over(t, Raw, func(i image) { i[19]++ }), Raw, "backing file"},
		{"a name elsewhere", over(t, Raw, func(i image) { i[8] = 1 }), Raw, "backing file"},
		{"nothing under it", blank(t, nil), Raw, "lost"},
		{"no format", over(t, Raw, func(i image) { clear(i[112:120]) }), Raw, "name the format of its backing file"},
		{"data elsewhere", over(t, Raw, func(i image) { i[79] = external }), Raw, "another file"},
		{"no image", make([]byte, 1024), Raw, "not a qcow2"},
		{"cut short", over(t, Raw, nil)[:80], Raw, "header is cut short"},
	} {
		d, err := InspectOverlay(bytes.NewReader(try.content), int64(len(try.content)), try.format)
		var refused *InvalidError
		switch {
		case try.refused == "" && err == nil && *d == Disk{QCow2, 1 << 30}:
		case try.refused == "" || !errors.As(err, &refused) || !strings.Contains(refused.What, try.refused) ||
			refused.Cure == "":
			t.Errorf("%s: %v, %v", try.what, d, err)
		}
	}
	content := over(t, Raw, nil)
	if _, err := Inspect("a.qcow2", bytes.NewReader(content), int64(len(content))); err == nil {
		t.Error("it is taken as an image of its own")
	}
}
