package xen

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/test/need"
)

// TestConsole: one user at a time has the console of a guest. Input reaches the guest unchanged,
// and the connection ends with the guest. Closing the connection frees the console.
func TestConsole(t *testing.T) {
	r, err := newRing()
	need.Given(t, "pseudo-terminal", err)
	defer r.close()
	_, m, _ := ground(t, "echo 12")
	must(t, os.MkdirAll(m.Run, 0o700))
	dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	store := "#!/bin/sh\n[ \"$1\" = /local/domain/12/console/tty ] && echo " + r.path + "\n"
	must(t, os.WriteFile(filepath.Join(dir, "xenstore-read"), []byte(store), 0o755))
	ada := host.Holder{Who: "ada", Pid: os.Getpid(), Command: "orrery console db1"}
	for range 2 {
		c, err := console{m}.connect(t.Context(), ada)
		must(t, err)
		if _, err := (console{m}).connect(t.Context(), host.Holder{Who: "bob"}); !problem.Is(err, problem.Locked) ||
			!strings.Contains(err.Error(), `the console of node db1 is in use: ada runs "orrery console db1"`) {
			t.Errorf("for the second: %v", err)
		}
		_, err = c.Write([]byte("id\r\x03"))
		must(t, err)
		typed := make([]byte, 4)
		if _, err := io.ReadFull(r.ours, typed); err != nil || string(typed) != "id\r\x03" {
			t.Errorf("typed: %q, %v", typed, err)
		}
		_, err = r.ours.Write([]byte("uid=0\n"))
		must(t, err)
		shown := make([]byte, 6)
		if _, err := io.ReadFull(c, shown); err != nil || string(shown) != "uid=0\n" {
			t.Errorf("printed: %q, %v", shown, err)
		}
		read := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			read <- err
		}()
		must(t, c.Close())
		if err := <-read; err == nil {
			t.Error("who reads goes on when it is closed")
		}
	}
	c, err := console{m}.connect(t.Context(), ada)
	must(t, err)
	must(t, r.ours.Close())
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the end of a guest: %v", err)
	}
	must(t, c.Close())
	must(t, os.WriteFile(filepath.Join(dir, "xenstore-read"), []byte("#!/bin/sh\necho /etc/passwd\n"), 0o755))
	if _, err := (console{m}).connect(t.Context(), ada); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "does not answer") || !strings.Contains(err.Error(), "/etc/passwd") {
		t.Errorf("no terminal: %v", err)
	}
	if host.IsLocked(filepath.Join(m.Run, "console.lock")) {
		t.Error("who was not answered still has it")
	}
	if _, err := (console{m}).Open(t.Context(), ada); err == nil || err.Error() != engine.NotRunning(m.Ref).Error() {
		t.Errorf("of a node that does not run: %v", err)
	}
}

// TestPrinted: Printed returns the output recorded by xenconsoled, or how to enable that.
func TestPrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guest.log")
	if text, err := printed(path); err != nil || !strings.Contains(string(text), "XENCONSOLED_TRACE=guest") {
		t.Errorf("%q, %v", text, err)
	}
	must(t, os.WriteFile(path, []byte("old"+strings.Repeat("x", maxPrintedBytes-1)+"\n"), 0o600))
	if text, err := printed(path); err != nil || len(text) != maxPrintedBytes || !strings.HasSuffix(string(text), "x\n") ||
		strings.HasPrefix(string(text), "o") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := openTerminal(path); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("a file is taken for a terminal: %v", err)
	}
}
