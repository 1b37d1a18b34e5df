package kvm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/vm"
	"orrery/internal/host/process"
)

// monitorOf serves the monitor of a machine in the given state, with a migration in the given
// state.
func monitorOf(t *testing.T, dir, state, migration string) {
	t.Helper()
	serveMonitor(t, dir, func(command string, _ map[string]any) (string, string, bool) {
		switch command {
		case "query-status":
			return `"return":{"status":"` + state + `"}`, "", false
		case "query-migrate":
			return `"return":{"status":"` + migration + `"}`, "", false
		}
		return `"return":{}`, "", false
	})
}

// TestSent: exactly one of two machines continues. It is the second if that has the state, whatever
// a monitor says about earlier migrations.
func TestSent(t *testing.T) {
	for name, c := range map[string]struct {
		is, migration, heir string
		want                bool
	}{
		"nothing was sent":          {qmp.Running, "", qmp.Receiving, false},
		"it was given up":           {qmp.Running, "cancelled", qmp.Receiving, false},
		"it could not be sent":      {qmp.Running, "failed", "", false},
		"it was":                    {qmp.Sent, "completed", qmp.Running, true},
		"it has once come that way": {qmp.Running, "completed", qmp.Receiving, false},
		"it has ended before":       {"", "", qmp.Receiving, false},
		"it has ended after":        {"", "", qmp.Running, true},
		"both have":                 {"", "", "", false},
	} {
		m := machine{Machine: vm.Machine{Ref: engine.Ref{Name: "n"}, Run: t.TempDir(), Dir: dirOf(t)}}
		for dir, state := range map[string]string{m.Run: c.is, m.nextRun(): c.heir} {
			if state != "" {
				monitorOf(t, dir, state, c.migration)
			}
		}
		if got := (&takeover{m: m}).stateSent(t.Context()); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestPassOn: the sending machine notices when the receiving one ends, because no other process has
// an end of their connection.
func TestPassOn(t *testing.T) {
	handed := func(do func(conn *net.UnixConn, fd int)) *qmp.Client {
		path := filepath.Join(t.TempDir(), monitorSocket)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		must(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprintln(conn, `{"QMP":{"version":{},"capabilities":[]}}`)
			for fd, in, rights := -1, make([]byte, 4096), make([]byte, 64); ; {
				n, m, _, _, err := conn.ReadMsgUnix(in, rights)
				if err != nil {
					return
				}
				if all, _ := unix.ParseSocketControlMessage(rights[:m]); len(all) == 1 {
					fds, _ := unix.ParseUnixRights(&all[0])
					fd = fds[0]
				}
				var asked struct {
					Execute string
					ID      int
				}
				_ = json.Unmarshal(in[:n], &asked)
				answer := "{}"
				switch asked.Execute {
				case "migrate", "migrate-incoming":
					do(conn, fd)
				case "query-migrate":
					answer = `{"status":"failed","error-desc":"nobody reads"}`
				}
				fmt.Fprintf(conn, `{"return":%s,"id":%d}`+"\n", answer, asked.ID)
			}
		}()
		q, err := qmp.Dial(t.Context(), path)
		must(t, err)
		return q
	}
	ended := make(chan bool, 1)
	heir := handed(func(_ *net.UnixConn, fd int) { _ = unix.Close(fd) })
	old := handed(func(conn *net.UnixConn, fd int) {
		_, err := unix.Write(fd, []byte("state"))
		ended <- errors.Is(err, unix.EPIPE)
		fmt.Fprintln(conn, `{"event":"MIGRATION","data":{"status":"failed"}}`)
	})
	if _, err := sendState(t.Context(), old, heir); err == nil || !strings.Contains(err.Error(), "nobody reads") {
		t.Error(err)
	}
	if !<-ended {
		t.Error("the state of a machine goes where nobody reads it")
	}
}

// TestCrew: a process belongs to a crew only as long as it is the same process. A crew can be
// stored and read again.
func TestCrew(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	leaving := process.NewSet([]int{cmd.Process.Pid})
	leaving[os.Getpid()] = "1"
	m := machine{Machine: vm.Machine{Dir: dirOf(t)}}
	must(t, (&takeover{handover: handover{Leaving: leaving}, m: m}).save())
	text, err := os.ReadFile(m.handoverFile())
	must(t, err)
	var h handover
	must(t, json.Unmarshal(text, &h))
	if !h.Leaving.Has(cmd.Process.Pid) || h.Leaving.Has(os.Getpid()) || h.Leaving.Has(1) || h.Taken ||
		strings.Contains(string(text), "taken") {
		t.Errorf("%s", text)
	}
}
