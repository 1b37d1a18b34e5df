package kvm

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// TestSerial: one user at a time has the console of a machine, and the next is told who that is.
// Closing the connection frees it.
func TestSerial(t *testing.T) {
	m := machine{Machine: vm.Machine{Dir: dirOf(t), Ref: engine.Ref{Site: "s", ID: 101, Name: "db"}, Run: t.TempDir()}}
	l, err := net.Listen("unix", filepath.Join(m.Run, consoleSocket))
	must(t, err)
	defer l.Close()
	ada := host.Holder{Who: "ada", Pid: os.Getpid(), Command: "orrery console db"}
	for range 2 {
		c, err := serial{m}.connect(t.Context(), ada)
		must(t, err)
		far, err := l.Accept()
		must(t, err)
		_, err = serial{m}.connect(t.Context(), host.Holder{Who: "bob"})
		if !problem.Is(err, problem.Locked) ||
			!strings.Contains(err.Error(), `the console of node db is in use: ada runs "orrery console db"`) ||
			!strings.Contains(err.Error(), "orrery console --log db") {
			t.Errorf("for the second: %v", err)
		}
		_, err = far.Write([]byte("# "))
		must(t, err)
		got := make([]byte, 2)
		_, err = c.Read(got)
		must(t, err)
		_, err = c.Write([]byte("id\r"))
		must(t, err)
		if typed, err := bufio.NewReader(far).ReadString('\r'); typed != "id\r" || string(got) != "# " {
			t.Errorf("typed %q (%v), printed %q", typed, err, got)
		}
		must(t, c.Close())
		must(t, far.Close())
	}
	must(t, l.Close())
	if _, err := (serial{m}).connect(t.Context(), ada); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "does not answer") {
		t.Error(err)
	}
	if host.IsLocked(filepath.Join(m.Run, "console.lock")) {
		t.Error("who was not answered still has it")
	}
}

// TestPrinted: for a stopped machine, Printed returns what was saved when it last stopped.
func TestPrinted(t *testing.T) {
	m := machine{Machine: vm.Machine{Dir: dirOf(t), Ref: engine.Ref{Site: "no-such-site", ID: 101, Name: "db"}}}
	if _, err := (serial{m}).Printed(); !os.IsNotExist(err) {
		t.Error(err)
	}
	must(t, os.WriteFile(m.console(), []byte("Kernel panic\r\n"), 0o600))
	if text, err := (serial{m}).Printed(); string(text) != "Kernel panic\r\n" || err != nil {
		t.Errorf("%q %v", text, err)
	}
	if _, err := (serial{m}).Open(t.Context(), host.Holder{}); err == nil ||
		err.Error() != engine.NotRunning(m.Ref).Error() {
		t.Error(err)
	}
}

func dirOf(t *testing.T) nodedir.Dir {
	t.Helper()
	d := nodedir.Of(host.Dirs{State: t.TempDir()}, "karoo", 101)
	must(t, os.MkdirAll(d.Path(), 0o700))
	return d
}
