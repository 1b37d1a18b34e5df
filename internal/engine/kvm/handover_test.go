package kvm

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/qmp"
)

// monitorOf makes a monitor of a machine that is in some state, of which one migration is said to have gone some way.
func monitorOf(t *testing.T, dir, state, migration string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	l, err := net.Listen("unix", filepath.Join(dir, monitor))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(conn, `{"QMP":{"version":{},"capabilities":[]}}`)
			for in := bufio.NewScanner(conn); in.Scan(); {
				var asked struct {
					Execute string
					ID      int
				}
				_ = json.Unmarshal(in.Bytes(), &asked)
				answer := map[string]string{"query-status": `{"status":"` + state + `"}`, "query-migrate": `{"status":"` + migration + `"}`}[asked.Execute]
				if answer == "" {
					answer = "{}"
				}
				fmt.Fprintf(conn, `{"return":%s,"id":%d}`+"\n", answer, asked.ID)
			}
			conn.Close()
		}
	}()
}

// TestSent: of two machines, one goes on: the second if it has the state, whatever a monitor says of migrations that were before.
func TestSent(t *testing.T) {
	for name, c := range map[string]struct {
		is, migration, heir string
		want                bool
	}{
		"nothing was sent":          {qmp.Running, "", qmp.Awaits, false},
		"it was given up":           {qmp.Running, "cancelled", qmp.Awaits, false},
		"it could not be sent":      {qmp.Running, "failed", "", false},
		"it was":                    {qmp.Sent, "completed", qmp.Running, true},
		"it has once come that way": {qmp.Running, "completed", qmp.Awaits, false},
		"it has ended before":       {"", "", qmp.Awaits, false},
		"it has ended after":        {"", "", qmp.Running, true},
		"both have":                 {"", "", "", false},
	} {
		m := machine{ref: engine.Ref{Name: "n"}, run: t.TempDir(), Dir: dirOf(t)}
		for dir, state := range map[string]string{m.run: c.is, m.nextRun(): c.heir} {
			if state != "" {
				monitorOf(t, dir, state, c.migration)
			}
		}
		if got := m.sent(t.Context()); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestCrew: a process is one of a crew as long as it is that process, and a record of it can be read again.
func TestCrew(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	m := machine{Dir: dirOf(t)}
	must(t, m.note(handover{Leaving: crew{cmd.Process.Pid: began(cmd.Process.Pid), os.Getpid(): "1"}}))
	text, err := os.ReadFile(m.moving())
	must(t, err)
	var h handover
	must(t, json.Unmarshal(text, &h))
	if !h.Leaving.has(cmd.Process.Pid) || h.Leaving.has(os.Getpid()) || h.Leaving.has(1) || h.Taken || strings.Contains(string(text), "taken") {
		t.Errorf("%s", text)
	}
}
