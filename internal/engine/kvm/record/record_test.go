package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRecord: the last output of a guest is stored, up to a limit. It stays when the writers have
// ended, and the next recorder continues it.
func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was recorded: %v", err)
	}
	if _, err := Open(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nobody records: %v", err)
	}
	records(t, dir, "booting\r\n")
	kept(t, dir, "booting\r\n")
	if _, err := Open(dir); !errors.Is(err, unix.ENXIO) {
		t.Errorf("nobody records any more: %v", err)
	}
	records(t, dir, "and again\r\n")
	kept(t, dir, "booting\r\nand again\r\n")

	var all strings.Builder
	for i := 0; all.Len() < 3*MaxBytes; i++ {
		fmt.Fprintf(&all, "line %d\r\n", i)
	}
	records(t, dir, all.String()+"Kernel panic\r\n")
	text, err := Read(dir)
	must(t, err)
	if len(text) > MaxBytes || len(text) < MaxBytes/2 ||
		!strings.HasSuffix(all.String()+"Kernel panic\r\n", string(text)) {
		t.Errorf("%d bytes are kept, from %.40q on to %q", len(text), text, text[max(0, len(text)-40):])
	}
	for i := range 2 {
		if info, err := os.Stat(half(dir, i)); err != nil || info.Size() > headerBytes+MaxBytes/2 ||
			info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
	}
	path := filepath.Join(t.TempDir(), "console.log")
	Save(dir, path)
	if saved, err := os.ReadFile(path); err != nil || !bytes.Equal(saved, text) {
		t.Errorf("%d bytes were saved: %v", len(saved), err)
	}
}

// records prints something as a guest would, and waits until that is recorded.
func records(t *testing.T, dir, text string) {
	t.Helper()
	r, err := Create(dir)
	must(t, err)
	other, err := Open(dir) // as a QEMU that takes over
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- rotate(r.From, r.Halves) }()
	_, err = r.To.WriteString(text)
	must(t, err)
	must(t, r.To.Close())
	must(t, other.Close())
	must(t, <-done)
	r.Close()
}

func kept(t *testing.T, dir, want string) {
	t.Helper()
	if text, err := Read(dir); string(text) != want || err != nil {
		t.Errorf("%q is kept: %v", text, err)
	}
}

func TestLastWords(t *testing.T) {
	if LastLines(nil) != "" {
		t.Error("a machine that never ran has said something")
	}
	words := LastLines([]byte(strings.Repeat("old\r\n", 5000) + "Kernel panic\x1b[2J\r\n"))
	if strings.Count(words, "old") != 9 || !strings.Contains(words, "\nKernel panic") ||
		strings.ContainsAny(words, "\x1b\r") {
		t.Errorf("%q", words)
	}
}

// TestPanic: the text about a panic begins with its cause, is limited, and has no control
// characters.
//
// Promise (What others print and answer): A panic of a guest's kernel is shown bounded, without
// control characters. With cli/table.TestMishap.
func TestPanic(t *testing.T) {
	told := PanicCause([]byte("booting\r\n[ 1.2] Kernel panic - not syncing: no\x1b[2J root\r\n" +
		strings.Repeat("trace\r\n", 300)))
	if !strings.HasPrefix(told, "Kernel panic - not syncing: no") || strings.ContainsAny(told, "\x1b\r") ||
		strings.Count(told, "trace") != 10 {
		t.Errorf("%q", told)
	}
	for _, text := range []string{"", "\r\n", "Kernel panic" + strings.Repeat("x", MaxBytes),
		strings.Repeat("old\n", MaxBytes/4)} {
		if told := PanicCause([]byte(text)); told == "" || len(told) > 8<<10 {
			t.Errorf("%d bytes are told of %d", len(told), len(text))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
