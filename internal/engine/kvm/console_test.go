package kvm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/test/need"
)

// TestScrap: a program that prints without end is heard at its beginning, and takes no more memory than that.
func TestScrap(t *testing.T) {
	f, err := scrap("test")
	must(t, err)
	defer f.Close()
	if saidOn(f) != "" {
		t.Error("it begins with something on it")
	}
	_, err = fmt.Fprint(f, "cannot \x1b[2Jgo on\n")
	must(t, err)
	if said := saidOn(f); !strings.HasPrefix(said, "cannot ") || strings.Contains(said, "\x1b") {
		t.Errorf("%q", said)
	}
	if _, err := f.Write(make([]byte, mostSaid)); err == nil {
		t.Error("it has grown")
	}
}

// TestRecord: what a guest prints is recorded up to a bound, outlives whoever printed it, and of it only the end is shown, as text.
func TestRecord(t *testing.T) {
	need.Integration(t)
	log, err := recorder()
	must(t, err)
	defer log.Close()
	record, err := again(fmt.Sprintf("/proc/self/fd/%d", log.Fd()))
	must(t, err)
	defer record.Close()
	_, err = log.WriteString(strings.Repeat("old\r\n", 5000) + "Kernel panic\x1b[2J\r\n")
	must(t, err)
	n, err := log.Write(make([]byte, 2*mostConsole))
	if err == nil || n > mostConsole {
		t.Errorf("%d bytes more were recorded: %v", n, err)
	}
	m := machine{Dir: dirOf(t)}
	if text := m.keep(record); len(text) != mostConsole {
		t.Errorf("%d bytes were kept", len(text))
	}
}

func TestLastWords(t *testing.T) {
	if lastWords(nil) != "" {
		t.Error("a machine that never ran has said something")
	}
	words := lastWords([]byte(strings.Repeat("old\r\n", 5000) + "Kernel panic\x1b[2J\r\n"))
	if strings.Count(words, "old") != 9 || !strings.Contains(words, "\nKernel panic") || strings.ContainsAny(words, "\x1b\r") {
		t.Errorf("%q", words)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	if _, err := again(pipe); err == nil {
		t.Error("a pipe is taken for a record")
	}
}

func dirOf(t *testing.T) nodedir.Dir {
	t.Helper()
	d := nodedir.Of(host.Dirs{State: t.TempDir()}, "karoo", 101)
	must(t, os.MkdirAll(d.Path(), 0o700))
	return d
}
