package tree

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// fix sets a flag of a path, as chattr(1) does. It skips the test where that is impossible.
func fix(t *testing.T, path string, mark int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags)&^(immutable|appendOnly)|mark)
	}
	if err != nil {
		t.Skipf("nothing can be marked as immutable here: %v", err)
	}
}

const immutable, appendOnly = 0x10, 0x20

// TestRemoveFixed: immutable and append-only files and directories (chattr +i, +a) are removed, at
// any depth.
func TestRemoveFixed(t *testing.T) {
	probe := filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fix(t, probe, immutable)
	fix(t, probe, 0)
	for name, mark := range map[string]int{"immutable": immutable, "append only": appendOnly,
		"both": immutable | appendOnly} {
		t.Run(name, func(t *testing.T) {
			top := filepath.Join(t.TempDir(), "volume")
			deepest := top
			for i := range maxOpenDepth + 8 {
				deepest = filepath.Join(deepest, "d"+strconv.Itoa(i))
			}
			var all []string
			for _, dir := range []string{top, filepath.Join(top, "data", "empty"), deepest, filepath.Join(deepest, "more")} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(dir, "file")
				if err := os.WriteFile(file, []byte("x"), 0o400); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
					t.Fatal(err)
				}
				all = append(all, file)
			}
			for dir := filepath.Join(deepest, "more"); dir != filepath.Dir(top); dir = filepath.Dir(dir) {
				all = append(all, dir)
			}
			all = append(all, filepath.Join(top, "data", "empty"), filepath.Join(top, "data"))
			for _, path := range all {
				fix(t, path, mark)
			}
			t.Cleanup(func() {
				for _, path := range all {
					if _, err := os.Lstat(path); err == nil {
						fix(t, path, 0)
					}
				}
			})
			if err := RemoveAll(top); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(top); err == nil {
				t.Error("it is still there")
			}
		})
	}
}
