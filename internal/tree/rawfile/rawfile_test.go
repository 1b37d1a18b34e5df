package rawfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestReadFile: a file of any length is read completely, including files of /proc, which do not
// report their size.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, length := range []int{0, 1, 1023, 1024, 1025, 5000, 1 << 20} {
		want := bytes.Repeat([]byte("x"), length)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("of %d bytes, %d are read: %v", length, len(got), err)
		}
	}
	if text, err := ReadFile("/proc/self/status"); err != nil || !bytes.HasPrefix(text, []byte("Name:")) {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ReadFile(path + "-none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	if _, err := ReadFile(filepath.Dir(path)); err == nil {
		t.Error("a directory is read")
	}
}

// TestRead: an endless file is only read up to the limit.
func TestRead(t *testing.T) {
	f, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := Read(int(f.Fd()), 100); err != nil || len(text) <= 100 || len(text) > 4096 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
