package wire

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// pair gives both ends of a connection.
func pair(t testing.TB) (near, far net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]net.Conn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

// served gives a client of a place that is served, and waits for the end of both.
func served_(t testing.TB, place host.Runner) *Client {
	t.Helper()
	near, far := pair(t)
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, far, place) }()
	opening, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	c, err := Open(opening, near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Error("the far end does not end")
		}
		end()
	})
	return c
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestRun(t *testing.T) {
	r := served_(t, host.Local{Name: "far"}).Runner("node")
	var stdout, stderr bytes.Buffer
	err := r.Run(within(t, 20*time.Second), host.Command{
		Args: []string{"sh", "-c", `cat; echo "$WORD" >&2; exit 7`}, Env: []string{"WORD=said"}, Stdin: strings.NewReader("typed"), Stdout: &stdout, Stderr: &stderr,
	})
	var run *host.RunError
	if !errors.As(err, &run) || run.Status != 7 || run.Place != "node" || stdout.String() != "typed" || stderr.String() != "said\n" {
		t.Errorf("%#v: %q %q", err, stdout.String(), stderr.String())
	}
}
