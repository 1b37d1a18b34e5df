package qmp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
)

const greeting = `{"QMP":{"version":{},"capabilities":[]}}`

// numbered returns answers with the id of a command.
func numbered(answers string, command []byte) string {
	var asked struct{ ID int }
	_ = json.Unmarshal(command, &asked)
	for _, kind := range []string{"return", "error"} {
		answers = strings.ReplaceAll(answers, `{"`+kind+`":`, fmt.Sprintf(`{"id":%d,"%s":`, asked.ID, kind))
	}
	return answers
}

// says serves a monitor that greets, and answers each command with a line.
func says(t *testing.T, lines ...string) (path string) {
	t.Helper()
	return serves(t, func(conn *net.UnixConn) {
		in := bufio.NewScanner(conn)
		for _, line := range append([]string{greeting}, lines...) {
			if _, err := io.WriteString(conn, numbered(line, in.Bytes())+"\n"); err != nil || !in.Scan() {
				return
			}
		}
	})
}

func serves(t *testing.T, speak func(*net.UnixConn)) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "monitor.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		defer conn.Close()
		speak(conn)
	}()
	return path
}

const done = `{"return":{}}`

// TestDo: commands get their answers, whatever events come between. An error has QEMU's words,
// without terminal control characters.
func TestDo(t *testing.T) {
	c, err := Dial(t.Context(), says(t, done, "{\"event\":\"RESUME\"}\n{\"return\":{\"status\":\"running\"}}",
		`{"error":{"class":"CommandNotFound","desc":"no \u001b[2J"}}`))
	must(t, err)
	defer c.Close()
	var reply struct{ Status string }
	if err := c.Do(t.Context(), "query-status", nil, &reply); err != nil || reply.Status != "running" {
		t.Errorf("%+v, %v", reply, err)
	}
	err = c.Do(t.Context(), "quit", nil, nil)
	var refused *CommandError
	if !errors.As(err, &refused) || !refused.Unknown() || strings.Contains(err.Error(), "\x1b") ||
		!strings.Contains(err.Error(), "quit: no ") {
		t.Error(err)
	}
	if err := c.Do(t.Context(), "quit", nil, nil); err == nil ||
		!strings.Contains(err.Error(), "quit is not answered: it has exited") {
		t.Errorf("a monitor that has ended has answered: %v", err)
	}
}

// TestArguments: a command is sent with its arguments, in one line.
func TestArguments(t *testing.T) {
	var got struct {
		Execute   string
		Arguments struct{ Value int }
	}
	c, err := Dial(t.Context(), serves(t, func(conn *net.UnixConn) {
		in := bufio.NewScanner(conn)
		fmt.Fprintln(conn, greeting)
		in.Scan()
		fmt.Fprintln(conn, numbered(done, in.Bytes()))
		in.Scan()
		_ = json.Unmarshal(in.Bytes(), &got)
		fmt.Fprintln(conn, numbered(done, in.Bytes()))
	}))
	must(t, err)
	defer c.Close()
	must(t, c.Do(t.Context(), "balloon", map[string]any{"value": 7}, nil))
	if got.Execute != "balloon" || got.Arguments.Value != 7 {
		t.Errorf("%+v", got)
	}
}

// TestAwait: events are stored while commands are answered, even before the first Await, and are
// returned in order.
func TestAwait(t *testing.T) {
	c, err := Dial(t.Context(), says(t, done, `{"event":"STOP"}`+"\n"+`{"event":"MIGRATION","data":{"status":"active"}}`+
		"\n"+done,
		done+"\n"+`{"event":"RTC_CHANGE"}`+"\n"+`{"event":"MIGRATION","data":{"status":"completed"}}`))
	must(t, err)
	defer c.Close()
	must(t, c.Do(t.Context(), "stop", nil, nil))
	must(t, c.Do(t.Context(), "migrate", nil, nil))
	for _, want := range []string{`{"status":"active"}`, `{"status":"completed"}`} {
		if e, err := c.Await(t.Context(), "MIGRATION"); err != nil || string(e.Data) != want {
			t.Errorf("%s, %v", e.Data, err)
		}
	}
	for _, want := range []string{"STOP", "RTC_CHANGE"} {
		if e, err := c.Await(t.Context()); err != nil || e.Name != want {
			t.Errorf("%s, %v", e.Name, err)
		}
	}
}

// TestFlood: the stored events of a machine are limited.
func TestFlood(t *testing.T) {
	event := `{"event":"NOISE","data":"` + strings.Repeat("x", 1<<16) + `"}` + "\n"
	c, err := Dial(t.Context(), says(t, done, strings.Repeat(event, 40)+`{"event":"LAST"}`+"\n"+done))
	must(t, err)
	defer c.Close()
	must(t, c.Do(t.Context(), "stop", nil, nil))
	if c.size > maxMessageBytes || len(c.kept) > 17 {
		t.Errorf("%d events of %d bytes are kept", len(c.kept), c.size)
	}
	if _, err := c.Await(t.Context(), "LAST"); err != nil {
		t.Error(err)
	}
}

// TestTimeouts: after a timeout, the late answer is not returned for the next command.
func TestTimeouts(t *testing.T) {
	asked := make(chan struct{})
	c, err := Dial(t.Context(), serves(t, func(conn *net.UnixConn) {
		in := bufio.NewScanner(conn)
		fmt.Fprintln(conn, greeting)
		in.Scan()
		fmt.Fprintln(conn, numbered(done, in.Bytes()))
		in.Scan()
		fmt.Fprint(conn, `{"return":"la`)
		close(asked)
		in.Scan()
		fmt.Fprintln(conn, `te","id":2}`)
		fmt.Fprintln(conn, `{"return":"right","id":3}`)
	}))
	must(t, err)
	defer c.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-asked; time.Sleep(10 * time.Millisecond); cancel(errors.New("no more time")) }()
	var answer string
	if err := c.Do(ctx, "query-name", nil, &answer); err == nil || !strings.Contains(err.Error(), "no more time") {
		t.Errorf("%q, %v", answer, err)
	}
	if err := c.Do(t.Context(), "query-name", nil, &answer); err != nil || answer != "right" {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestHand: a file arrives with the command that names it.
func TestHand(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	defer f.Close()
	path := serves(t, func(conn *net.UnixConn) {
		fmt.Fprintln(conn, greeting)
		in, rights := make([]byte, 4096), make([]byte, 64)
		n, _ := conn.Read(in)
		fmt.Fprintln(conn, numbered(done, in[:n]))
		for _, answer := range []string{`{"return":{}}`, `{"return":{"fdset-id":3,"fd":17}}`} {
			n, m, _, _, err := conn.ReadMsgUnix(in, rights)
			if err != nil {
				return
			}
			all, err := unix.ParseSocketControlMessage(rights[:m])
			if err != nil || len(all) != 1 || !bytes.HasSuffix(in[:n], []byte("\n")) {
				return
			}
			fds, _ := unix.ParseUnixRights(&all[0])
			if _, err := unix.Write(fds[0], []byte("here ")); err != nil {
				return
			}
			_ = unix.Close(fds[0])
			fmt.Fprintln(conn, numbered(answer, in[:n]))
		}
	})
	c, err := Dial(t.Context(), path)
	must(t, err)
	defer c.Close()
	must(t, c.PassFile(t.Context(), "state", f))
	if path, err := c.AddFD(t.Context(), f); err != nil || path != "/dev/fdset/3" {
		t.Errorf("%s, %v", path, err)
	}
	if text, err := os.ReadFile(f.Name()); err != nil || string(text) != "here here " {
		t.Errorf("%q, %v", text, err)
	}
}

// TestLies: an invalid, oversized or missing message is an error.
func TestLies(t *testing.T) {
	for name, speak := range map[string]func(io.Writer){
		"noise":   func(w io.Writer) { fmt.Fprintln(w, "hello") },
		"endless": func(w io.Writer) { _, _ = io.WriteString(w, strings.Repeat("x", maxMessageBytes+1)) },
		"gone":    func(w io.Writer) { fmt.Fprintf(w, "%s\n{\"retu", greeting) },
		"a list":  func(w io.Writer) { fmt.Fprintln(w, `[{"QMP":{}}]`) },
	} {
		path := serves(t, func(conn *net.UnixConn) { speak(conn) })
		if _, err := Dial(t.Context(), path); err == nil || !strings.Contains(err.Error(), "QEMU's monitor") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := Dial(t.Context(), says(t, done, `{"return":"no object"}`))
	must(t, err)
	defer c.Close()
	if err := c.Do(t.Context(), "query-status", nil, &struct{ Status string }{}); err == nil {
		t.Error("an answer of another kind is taken for one")
	}
	for _, path := range []string{serves(t, func(*net.UnixConn) { time.Sleep(time.Second) }),
		filepath.Join(t.TempDir(), "nobody.sock")} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("no more time"))
		defer cancel()
		if _, err := Dial(ctx, path); err == nil || !strings.Contains(err.Error(), "no more time") {
			t.Error(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
