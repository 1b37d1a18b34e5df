package kvm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/test/need"
)

// a monitor that a test makes up: it says these lines, the first at once, each other one for a line that it reads.
func monitorSays(t *testing.T, lines ...string) machine {
	t.Helper()
	m := machine{ref: engine.Ref{Name: "n"}, run: t.TempDir()}
	l, err := net.Listen("unix", filepath.Join(m.run, monitor))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewScanner(conn)
		for _, line := range lines {
			if _, err := io.WriteString(conn, line+"\n"); err != nil || !in.Scan() {
				return
			}
		}
	}()
	return m
}

const greeting = `{"QMP":{"version":{},"capabilities":[]}}`

// TestMonitor: commands are answered, whatever events come between; an error is told in QEMU's words, with nothing in them that a terminal obeys.
func TestMonitor(t *testing.T) {
	m := monitorSays(t, greeting, `{"return":{}}`,
		"{\"event\":\"RESUME\"}\n{\"return\":{\"status\":\"running\"}}", `{"error":{"class":"GenericError","desc":"no \u001b[2J"}}`)
	q, err := m.monitor(t.Context())
	must(t, err)
	defer q.Close()
	text, err := q.do(t.Context(), "query-status")
	if err != nil || string(text) != `{"status":"running"}` {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := q.do(t.Context(), "quit"); err == nil || strings.Contains(err.Error(), "\x1b") || !strings.Contains(err.Error(), "quit: no ") {
		t.Error(err)
	}
	if _, err := q.do(t.Context(), "quit"); err == nil {
		t.Error("a monitor that has ended has answered")
	}
}

// TestMonitorLies: what is no message, or too long, or never comes, is an error.
func TestMonitorLies(t *testing.T) {
	for name, lines := range map[string][]string{
		"noise": {"hello"}, "endless": {strings.Repeat("x", mostAnswer+1)}, "gone": {greeting, `{"retu`},
	} {
		if _, err := monitorSays(t, lines...).monitor(t.Context()); err == nil || !strings.Contains(err.Error(), "QEMU's monitor") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("no more time"))
	defer cancel()
	m := machine{run: t.TempDir()}
	l, err := net.Listen("unix", filepath.Join(m.run, monitor)) // and nobody answers
	must(t, err)
	defer l.Close()
	if _, err := m.monitor(ctx); err == nil || !strings.Contains(err.Error(), "no more time") {
		t.Error(err)
	}
}

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
