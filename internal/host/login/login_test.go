package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host"
	"orrery/internal/host/runnertest"
	"orrery/internal/problem"
	"orrery/test/need"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// key creates a key pair.
func key(t testing.TB, path string) ssh.Signer {
	t.Helper()
	text, err := GenerateKey(path, "test")
	must(t, err)
	signer, err := ssh.ParsePrivateKey(text)
	must(t, err)
	return signer
}

// server runs a real sshd as the user of this test, on standard input and output only. Each
// connection has its own sshd.
func server(t *testing.T, more ...string) Server {
	t.Helper()
	sshd := need.Program(t, "sshd")
	me, err := user.Current()
	must(t, err)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	d := Server{Place: "db", User: me.Username, Key: key(t, at("mine")), Host: key(t, at("host")).PublicKey()}
	must(t, os.WriteFile(at("authorized"), ssh.MarshalAuthorizedKey(d.Key.PublicKey()), 0o600))
	settings := fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n%s\n",
		at("host"), at("authorized"), strings.Join(more, "\n"))
	must(t, os.WriteFile(at("config"), []byte(settings), 0o600))
	d.Dial = func(context.Context) (net.Conn, error) {
		near, far, err := pair()
		if err != nil {
			return nil, err
		}
		defer far.Close()
		// The privilege separation directory of root's sshd, which the package creates at the
		// service's start.
		cmd := exec.Command("/bin/sh", "-c", `[ "$(id -u)" != 0 ] || mkdir -p /run/sshd; exec "$@"`, "sh", sshd, "-i", "-e",
			"-f", at("config"))
		cmd.Stdin, cmd.Stdout = far, far
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		t.Cleanup(func() {
			_ = near.Close()
			_ = cmd.Wait()
		})
		return near, nil
	}
	return d
}

// pair returns both ends of a connection, one of them as a file.
func pair() (net.Conn, *os.File, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	far, err := l.Accept()
	if err != nil {
		return nil, nil, err
	}
	defer far.Close()
	f, err := far.(*net.TCPConn).File()
	return near, f, err
}

func enter(t *testing.T, d Server) *Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := d.Connect(ctx)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestRunner runs the test suite of all Runners with a real sshd.
func TestRunner(t *testing.T) {
	d := server(t)
	f := runnertest.Fixture{Runner: enter(t, asRoot(t, d)), Place: d.Place, Dir: t.TempDir()}
	if os.Geteuid() == 0 {
		f.Owner = "daemon:daemon"
	}
	must(t, os.Chmod(f.Dir, 0o755))
	runnertest.Run(t, f)
}

// asRoot pretends that the user of the test is root, so that commands do not switch users.
func asRoot(t *testing.T, d Server) Server {
	t.Helper()
	if d.User != "root" {
		t.Skip("this user is not root, and sudo would ask him for a password")
	}
	return d
}

// TestTerminal checks that a command has a terminal of the size of its user's.
func TestTerminal(t *testing.T) {
	c := enter(t, asRoot(t, server(t)))
	var screen bytes.Buffer
	err := c.Run(t.Context(), host.Command{
		Args: []string{"sh", "-c", "tty; stty size; exit 3"}, TTY: true,
		Terminal: &host.Terminal{Keys: strings.NewReader(""), Screen: &screen, Size: host.Size{Rows: 33, Columns: 77}},
	})
	var run *host.RunError
	if !errors.As(err, &run) || run.Status != 3 || !strings.Contains(screen.String(), "/dev/") ||
		!strings.Contains(screen.String(), "33 77") {
		t.Errorf("%q, %v", screen.String(), err)
	}
}

// TestDial checks that connections start from the machine, support deadlines, and can be half
// closed.
func TestDial(t *testing.T) {
	c := enter(t, server(t))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			text, _ := io.ReadAll(conn)
			_, _ = conn.Write(bytes.ToUpper(text))
			_ = conn.Close()
		}
	}()
	conn, err := c.Dial(t.Context(), "tcp", l.Addr().String())
	must(t, err)
	must(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(conn, "word")
	must(t, err)
	must(t, conn.(interface{ CloseWrite() error }).CloseWrite())
	if text, err := io.ReadAll(conn); string(text) != "WORD" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	must(t, conn.Close())
	var p *problem.Problem
	if _, err := c.Dial(t.Context(), "tcp", "example.org:80"); !errors.As(err, &p) ||
		!strings.Contains(p.What, "not a numeric address") {
		t.Errorf("%v", err)
	}
	if _, err := c.Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.As(err, &p) ||
		!strings.Contains(p.What, "could not be reached") {
		t.Errorf("%v", err)
	}
}

// TestAtOnce checks that more commands than sshd's sessions can run concurrently, even with a lower
// limit than usual.
func TestAtOnce(t *testing.T) {
	for _, allowed := range []string{"MaxSessions 10", "MaxSessions 3"} {
		c := enter(t, asRoot(t, server(t, allowed)))
		errs := make(chan error)
		for range 30 {
			go func() { errs <- c.Run(t.Context(), host.Command{Args: []string{"true"}}) }()
		}
		for range 30 {
			must(t, <-errs)
		}
	}
}

// TestWho checks that a wrong machine and a machine that rejects the key are both detected.
//
// Promise (Virtual machines): The SSH server of a guest must have its host key, can run nothing
// here, and takes bounded memory. With host/login.TestLies.
func TestWho(t *testing.T) {
	d := server(t)
	other := d
	other.Host = key(t, filepath.Join(t.TempDir(), "k")).PublicKey()
	var p *problem.Problem
	if _, err := other.Connect(t.Context()); !errors.As(err, &p) || !strings.Contains(err.Error(), "host key") ||
		p.Cure == "" {
		t.Errorf("%v", err)
	}
	stranger := d
	stranger.Key = key(t, filepath.Join(t.TempDir(), "k"))
	var not *NotReadyError
	if _, err := stranger.Connect(t.Context()); !errors.As(err, &not) ||
		!strings.Contains(err.Error(), "rejects the login") || not.Cure == "" {
		t.Errorf("%v", err)
	}
	mute := d
	mute.Dial = func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		return near, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := mute.Connect(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
