package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

func commandOf(args ...string) host.Command { return host.Command{Args: args} }

func command(s *suite, n *spec.Node) {
	s.want("output", s.ask(n, "echo", "a  b", "$HOME", "'"), "a  b $HOME '")
	s.want("input", s.askAs(n, host.Command{Args: []string{"cat"}, Stdin: strings.NewReader("x\ny\n")}), "x\ny")
	s.want("no input", s.ask(n, "cat"), "")
	s.want("root", s.ask(n, "id", "-u"), "0")
	s.want("user", s.askAs(n, host.Command{Args: []string{"id", "-u"}, User: "nobody"}), "65534")
	env := strings.Split(s.askAs(n, host.Command{Args: []string{"env"}, Env: []string{"ORRERY_X=a b=c", "ORRERY_Y="}}),
		"\n")
	for _, want := range []string{"ORRERY_X=a b=c", "ORRERY_Y="} {
		if !slices.Contains(env, want) {
			s.Errorf("%q is not in the environment: %q", want, env)
		}
	}
	var out, errs bytes.Buffer
	s.must(s.runner(n).Run(s.Context(), host.Command{Args: []string{"sh", "-c", "echo one; echo two >&2"}, Stdout: &out,
		Stderr: &errs}))
	s.want("standard output", out.String(), "one\n")
	s.want("standard error", errs.String(), "two\n")
	big := strings.Repeat("0123456789abcdef", 1<<16)
	if got := s.askAs(n, host.Command{Args: []string{"cat"}, Stdin: strings.NewReader(big)}); got != big {
		s.Errorf("of 1 MiB of input %d bytes came back", len(got))
	}
}

func commandFails(s *suite, n *spec.Node) {
	for _, c := range []struct {
		args   []string
		status int
		output string
	}{
		{[]string{"false"}, 1, ""},
		{[]string{"sh", "-c", "exit 3"}, 3, ""},
		{[]string{"sh", "-c", "echo out; echo err >&2; exit 42"}, 42, "out\nerr\n"},
		{[]string{"cat", "/no/such/file"}, 1, "/no/such/file"},
	} {
		err := s.runner(n).Run(s.Context(), commandOf(c.args...))
		var failed *host.RunError
		if !errors.As(err, &failed) {
			s.Errorf("%q gives no RunError: %v", c.args, err)
			continue
		}
		if failed.Status != c.status || !strings.Contains(failed.Output, c.output) {
			s.Errorf("%q: status %d, output %q", c.args, failed.Status, failed.Output)
		}
		if !strings.Contains(failed.Place, n.Name) {
			s.Errorf("the place %q does not name the node", failed.Place)
		}
	}
}

func commandCancelled(s *suite, n *spec.Node) {
	ctx, cancel := context.WithTimeout(s.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	err := s.runner(n).Run(ctx, commandOf("sleep", "3600"))
	if !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("the error does not tell that time ran out: %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		s.Errorf("the command went on for %v", took)
	}
	s.ask(n, "true")
	if s.Kernel { // zombies would delay the shutdown by init
		s.want("what is left of it in the node", s.ask(n, "sh", "-c", "cat /proc/[0-9]*/comm | grep sleep; true"), "")
	}
}

// stopEndsCommands: when a node stops, its commands end, and no command can be run in it.
func stopEndsCommands(s *suite, n *spec.Node) {
	ended := make(chan error, 1)
	go func() { ended <- s.runner(n).Run(s.Context(), commandOf("sleep", "3600")) }()
	time.Sleep(200 * time.Millisecond)
	s.stop(n)
	select {
	case err := <-ended:
		if err == nil {
			s.Error("a command that was cut short succeeded")
		}
	case <-time.After(s.within() / 2):
		s.Error("a command goes on in a node that does not run")
	}
	wantNotRunning(s, "Run", n, s.runner(n).Run(s.Context(), commandOf("true")))
	wantNotRunning(s, "Put", n, s.runner(n).Put(s.Context(), host.File{Path: "/etc/x"}))
	_, err := s.runner(n).Dial(s.Context(), "tcp", "127.0.0.1:1")
	wantNotRunning(s, "Dial", n, err)
	if v, ok := s.Engine.(engine.RootOpener); ok {
		if root, err := v.OpenRoot(engine.RefOf(n)); err == nil {
			root.Close() //nolint:errcheck // nothing was written
			s.Error("a node that does not run has a root")
		}
	}
}

// wantNotRunning checks that an error about a stopped node has the same text and cure in all engines.
func wantNotRunning(s *suite, what string, n *spec.Node, err error) {
	s.Helper()
	want := engine.NotRunning(engine.RefOf(n)).Error()
	if err == nil || !strings.Contains(err.Error(), want) || problem.ExitCode(err) != int(problem.Failed) {
		s.Errorf("%s of a stopped node: %v; want: %s", what, err, want)
	}
}

func put(s *suite, n *spec.Node) {
	files := []host.File{
		{Path: "/etc/plain", Content: []byte("a\nb"), Mode: 0o644},
		{Path: "/srv/new/deep/secret", Content: []byte{0, 1, 255}, Mode: 0o400, Owner: "nobody:nogroup"},
		{Path: "/etc/empty", Mode: 0o755},
	}
	s.must(s.runner(n).Put(s.Context(), files...))
	for _, f := range files {
		s.want(f.Path, s.ask(n, "cat", f.Path), string(f.Content))
	}
	s.want("mode and owner", s.ask(n, "stat", "-c", "%a %U:%G", "/etc/plain"), "644 root:root")
	s.want("mode and owner", s.ask(n, "stat", "-c", "%a %U:%G", "/srv/new/deep/secret"), "400 nobody:nogroup")
	s.want("mode and owner", s.ask(n, "stat", "-c", "%a %U:%G", "/etc/empty"), "755 root:root")
	s.put(n, host.File{Path: "/etc/plain", Content: []byte("c"), Mode: 0o600})
	s.want("replaced", s.ask(n, "cat", "/etc/plain"), "c")
	s.want("replaced", s.ask(n, "stat", "-c", "%a %U:%G", "/etc/plain"), "600 root:root")
}

func putLink(s *suite, n *spec.Node) {
	s.put(n, host.File{Path: "/etc/first", Content: []byte("1")})
	s.put(n, host.File{Path: "/etc/second", Content: []byte("2")})
	for _, to := range []string{"/etc/first", "/etc/second"} { // a link is replaced, not followed
		s.put(n, host.File{Path: "/etc/link", Link: to})
		s.want("link", s.ask(n, "readlink", "/etc/link"), to)
	}
	s.want("through the link", s.ask(n, "cat", "/etc/link"), "2")
	s.put(n, host.File{Path: "/etc/link", Content: []byte("3")})
	s.want("what took the link's place", s.ask(n, "cat", "/etc/link"), "3")
	s.want("what the link led to", s.ask(n, "cat", "/etc/second"), "2")
	if s.runner(n).Run(s.Context(), commandOf("readlink", "/etc/link")) == nil {
		s.Error("it is still a link")
	}
}

// putWhileRead: a process that reads a file while it is replaced sees the complete old or new
// content.
func putWhileRead(s *suite, n *spec.Node) {
	versions := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 100_000)}
	s.put(n, host.File{Path: "/etc/big", Content: []byte(versions[0])})
	ended := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 10 && err == nil; i++ {
			err = s.runner(n).Put(s.Context(), host.File{Path: "/etc/big", Content: []byte(versions[i%2]), Mode: 0o644})
		}
		ended <- err
	}()
	for reads := 0; ; reads++ {
		if got := s.ask(n, "cat", "/etc/big"); got != versions[0] && got != versions[1] {
			s.Fatalf("a reader saw %d bytes, partly written", len(got))
		}
		select {
		case err := <-ended:
			s.must(err)
			return
		default:
		}
	}
}

func dial(s *suite, n *spec.Node) {
	const port, text = 4711, "hello from the node\n"
	if c, err := s.runner(n).Dial(s.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		_ = c.Close()
		s.Error("something answers at a port at which nothing listens")
	}
	serve(s, n, port, text)
	ctx, cancel := context.WithTimeout(s.Context(), s.within()/2)
	defer cancel()
	for {
		c, err := s.runner(n).Dial(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil && ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond) // Python takes a moment to start
			continue
		}
		s.must(err)
		got, err := io.ReadAll(c)
		s.must(err)
		_ = c.Close()
		s.want("answer", string(got), text)
		return
	}
}

const server = `
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen()
while True:
    c, _ = s.accept()
    c.sendall(sys.argv[2].encode())
    c.close()
`

func serve(s *suite, n *spec.Node, port int, text string) {
	if s.Serve != nil {
		s.Serve(s.T, engine.RefOf(n), port, text)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.runner(n).Run(ctx, commandOf("python3", "-c", server, fmt.Sprint(port), text))
	}()
	s.Cleanup(func() { cancel(); <-ended })
}
