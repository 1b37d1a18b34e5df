package record

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/test/need"
)

// TestRecord: what a guest prints is recorded up to a bound, is found with whoever has it open and outlives that, and of it only the end is shown, as text.
func TestRecord(t *testing.T) {
	need.Integration(t)
	to, record, err := Make()
	must(t, err)
	defer to.Close()
	defer record.Close()
	_, err = to.WriteString(strings.Repeat("old\r\n", 5000) + "Kernel panic\x1b[2J\r\n")
	must(t, err)
	n, err := to.Write(make([]byte, 2*Most))
	if err == nil || n > Most {
		t.Errorf("%d bytes more were recorded: %v", n, err)
	}
	found, err := Of(os.Getpid())
	must(t, err)
	defer found.Close()
	path := filepath.Join(t.TempDir(), "console.log")
	if text := Keep(found, path); len(text) != Most || !strings.HasPrefix(string(text), "old\r\n") {
		t.Errorf("%d bytes were kept", len(text))
	}
	if info, err := os.Stat(path); err != nil || info.Size() != Most || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestLastWords(t *testing.T) {
	if LastWords(nil) != "" {
		t.Error("a machine that never ran has said something")
	}
	words := LastWords([]byte(strings.Repeat("old\r\n", 5000) + "Kernel panic\x1b[2J\r\n"))
	if strings.Count(words, "old") != 9 || !strings.Contains(words, "\nKernel panic") || strings.ContainsAny(words, "\x1b\r") {
		t.Errorf("%q", words)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	if _, err := open(pipe); err == nil {
		t.Error("a pipe is taken for a record")
	}
}

// TestPanic: of a console, what is told of a panic begins with its cause, is bounded, and has no control character.
func TestPanic(t *testing.T) {
	told := Panic([]byte("booting\r\n[ 1.2] Kernel panic - not syncing: no\x1b[2J root\r\n" + strings.Repeat("trace\r\n", 300)))
	if !strings.HasPrefix(told, "Kernel panic - not syncing: no") || strings.ContainsAny(told, "\x1b\r") || strings.Count(told, "trace") != 10 {
		t.Errorf("%q", told)
	}
	if told := Panic(bytes.Repeat([]byte("old\n"), Most/4)); !strings.Contains(told, "was full") {
		t.Errorf("of a full record: %q", told)
	}
	for _, text := range []string{"", "\r\n", "Kernel panic" + strings.Repeat("x", Most)} {
		if told := Panic([]byte(text)); told == "" || len(told) > 8<<10 {
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
