package kernel

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cavaliergopher/cpio"

	"orrery/internal/guest/boot"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

const digest = "0123abc"

// aLayer creates the layer of a kernel in a store, and a program for its guests.
func aLayer(t *testing.T, files map[string]string) (store *image.Store, guest string) {
	t.Helper()
	dir := t.TempDir()
	store = image.Open(dir)
	all := map[string]string{
		"boot/vmlinuz-6.1.0-test": string(bzImage(nil,
			packers["gzip"](t, elfWith(18, "Xen\x00")))),
		"usr/lib/modules/6.1.0-test/kernel/virtio.ko":         "\x7fELF virtio",
		"usr/lib/modules/6.1.0-test/kernel/virtio_pci.ko.zst": string(packers["zstd"](t, []byte("\x7fELF pci"))),
		"usr/lib/modules/6.1.0-test/kernel/virtio-rng.ko":     "\x7fELF rng",
		"usr/lib/modules/6.1.0-test/kernel/pvpanic-mmio.ko":   "\x7fELF panic",
		"usr/lib/modules/6.1.0-test/kernel/other.ko":          "\x7fELF other",
		"usr/lib/modules/6.1.0-test/modules.dep": "kernel/virtio.ko: kernel/ring.ko\nkernel/ring.ko:\nkernel/virtio_pci.ko.zst: kernel/virtio.ko kernel/ring.ko\n" +
			"kernel/virtio-rng.ko: kernel/virtio.ko kernel/ring.ko\nkernel/pvpanic-mmio.ko:\nkernel/other.ko:\n",
		"usr/lib/modules/6.1.0-test/kernel/ring.ko": "\x7fELF ring",
		"usr/lib/modules/6.1.0-test/modules.alias":  "# Aliases\nalias pci:v00001AF4d* virtio_pci\nalias virtio:d00000004v* virtio_rng\nalias acpi*:QEMU0001:* pvpanic_mmio\nalias char-major-10-1 virtio_rng\n",
	}
	for path, text := range files {
		all[path] = text
	}
	for path, text := range all {
		at := filepath.Join(store.Tree(digest), path)
		if text == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	guest = filepath.Join(dir, "orrery-guest")
	if err := os.WriteFile(guest, []byte("the guest"), 0o755); err != nil {
		t.Fatal(err)
	}
	return store, guest
}

// unpacked returns the content of an initramfs.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string]string{}
	for r := cpio.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

func TestFiles(t *testing.T) {
	store, guest := aLayer(t, nil)
	b, err := Files(t.Context(), store, digest, guest)
	if err != nil {
		t.Fatal(err)
	}
	if b.Release != "6.1.0-test" || !b.Has("virtio_rng") || b.Has("e1000") || b.Has("other") {
		t.Errorf("%+v", b)
	}
	kernel, err := os.ReadFile(b.Kernel)
	if err != nil || string(kernel) != string(elfWith(18, "Xen\x00")) {
		t.Errorf("a kernel of %d bytes, %v", len(kernel), err)
	}
	files := unpacked(t, b.Initramfs)
	for path, want := range map[string]string{
		"init": "the guest", "modules/virtio_pci.ko": "\x7fELF pci", "modules/virtio_rng.ko": "\x7fELF rng",
		"modules/ring.ko": "\x7fELF ring", "dev": "", "root": "",
	} {
		if got, ok := files[path]; !ok || got != want {
			t.Errorf("%s is %q, %v", path, got, ok)
		}
	}
	var list []boot.Module
	if err := json.Unmarshal([]byte(files["modules.json"]), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
		for _, need := range m.Needs {
			if !slices.Contains(names, need) {
				t.Errorf("%s comes before %s, which it needs", m.Name, need)
			}
		}
		if m.Name == "virtio_rng" && !slices.Equal(m.Aliases, []string{"virtio:d00000004v*"}) ||
			m.Name == "pvpanic_mmio" && !slices.Equal(m.Aliases, []string{"acpi*:QEMU0001:*"}) {
			t.Errorf("%+v", m)
		}
	}
	if strings.Join(names, " ") != "ring virtio virtio_pci virtio_rng pvpanic_mmio" {
		t.Errorf("modules %v", names)
	}
}

// TestFilesAreMadeOnce: a second machine uses the files made for the first. Another orrery-guest
// gets its own initramfs, and old ones are removed.
func TestFilesAreMadeOnce(t *testing.T) {
	store, guest := aLayer(t, nil)
	first, err := Files(t.Context(), store, digest, guest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first.Kernel, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(filepath.Dir(first.Kernel), "boot.lock")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if again, err := Files(t.Context(), store, digest, guest); err != nil || again.Initramfs != first.Initramfs ||
		tree.Exists(lock) {
		t.Errorf("what is there is made or locked again: %v", err)
	}
	old := filepath.Join(filepath.Dir(first.Kernel), initramfsPrefix+"old")
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(guest, []byte("a newer guest"), 0o755); err != nil {
		t.Fatal(err)
	}
	second, err := Files(t.Context(), store, digest, guest)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(second.Kernel); string(text) != "kept" || second.Initramfs == first.Initramfs ||
		unpacked(t, second.Initramfs)["init"] != "a newer guest" {
		t.Errorf("the kernel is made anew, or the initramfs is not: %+v, %+v", first, second)
	}
	if _, err := os.Stat(first.Initramfs); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an initramfs of long ago is still there")
	}
}

func TestFilesOfBadLayers(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no kernel": {map[string]string{"boot/vmlinuz-6.1.0-test": ""}, "but not that kernel"},
		"damaged": {map[string]string{"boot/vmlinuz-6.1.0-test": string(bzImage(nil,
			[]byte("no known way of packing")))}, "format is unknown"},
		"cut short": {map[string]string{"boot/vmlinuz-6.1.0-test": string(bzImage(nil,
			packers["gzip"](t, elfWith(18, "Xen\x00")))[:1700])}, "cut short"},
		"two kernels": {map[string]string{"usr/lib/modules/6.2/modules.dep": "x"}, "several kernels"},
		"bad module":  {map[string]string{"usr/lib/modules/6.1.0-test/kernel/ring.ko": "nothing"}, "ring.ko"},
	} {
		store, guest := aLayer(t, c.files)
		if _, err := Files(t.Context(), store, digest, guest); problem.ExitCode(err) != int(problem.Failed) ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), digest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	store, guest := aLayer(t, nil)
	if _, err := Files(t.Context(), store, digest, guest+"-not"); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "make bin/orrery-guest") {
		t.Error(err)
	}
}
