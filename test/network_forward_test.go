package test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// echo returns everything that it receives on an address and a port, after the sender has finished.
const echo = `
import socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    c = s.accept()[0]
    text = b""
    while part := c.recv(65536):
        text += part
    c.sendall(text.upper())
    c.close()
`

// TestForward: ports of nodes on this host's loopback.
func TestForward(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-forward", `
[network.lan]
subnet = "10.99.60.0/24"
[image.debian]
suite = "bookworm"
[node.portal]
id = 10
[node.late]
id = 11
`, nil)
	s.run("forward", "portal:7").want(1, "node portal does not run", "orrery up portal")
	s.do("up")
	s.run("forward", "portel:80").want(2, "did you mean portal?")
	s.run("forward", "portal").want(2, "NODE:PORT")
	s.run("forward", "portal:7", "--listen", "0.0.0.0:8000").want(2, "not a loopback address")
	s.on("portal", "systemd-run", "--quiet", "python3", "-c", echo, "127.0.0.1", "7")
	s.on("portal", "systemd-run", "--quiet", "python3", "-c", echo, "10.99.60.10", "8")

	for _, port := range []string{"7", "8"} { // on the node's loopback, and only on its address
		t.Run(port, func(t *testing.T) {
			f := s.of(t).forward("portal:" + port)
			s.eventually(func() error { return f.ask("half of it", "HALF OF IT") })
			long := strings.Repeat("many at once ", 20_000)
			done := make(chan error)
			for range 20 {
				go func() { done <- f.ask(long, strings.ToUpper(long)) }()
			}
			for range 20 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			s.run("forward", "late:22", "--listen", f.address).want(1, "is already in use")
			f.end(0)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		f := s.of(t).forward("late:9")
		for range 2 {
			if err := f.ask("x", ""); err == nil {
				t.Error("somebody answered")
			}
		}
		s.do("stop", "late")
		time.Sleep(1100 * time.Millisecond) // the program looks for the node once a second
		_ = f.ask("x", "")
		said := f.end(0)
		if strings.Count(said, "nothing listens on port 9 of node late") != 1 ||
			!strings.Contains(said, "node late does not run") {
			t.Errorf("it said\n%s", said)
		}
	})
}

// A forwarding is a running call of `orrery forward`.
type forwarding struct {
	*site
	address string
	cmd     *exec.Cmd
	wait    func() error
	errs    func() string
}

func (s *site) forward(target string) *forwarding {
	s.Helper()
	cmd, _, errs := s.command("forward", target, "--listen", "127.0.0.1:0")
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	wait, err := begin(cmd)
	if err != nil {
		s.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	at, ok := strings.CutSuffix(line, " -> "+target+"\n")
	u, err2 := url.Parse(at)
	if err != nil || !ok || err2 != nil {
		s.Fatalf("forward printed %q: %v %v %s", line, err, err2, errs.String())
	}
	return &forwarding{s, u.Host, cmd, wait, errs.String}
}

// ask sends a text, closes that direction, and checks the answer.
func (f *forwarding) ask(text, want string) error {
	c, err := net.Dial("tcp", f.address)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	go func() {
		io.WriteString(c, text)
		c.(*net.TCPConn).CloseWrite()
	}()
	answer, err := io.ReadAll(c)
	if err == nil && (len(answer) == 0 || string(answer) != want) {
		err = fmt.Errorf("%d bytes came back for %d", len(answer), len(text))
	}
	return err
}

// end ends the forwarding with Ctrl-C and returns its error output.
func (f *forwarding) end(status int) string {
	f.Helper()
	_ = f.cmd.Process.Signal(syscall.SIGINT)
	_ = f.wait()
	if got := f.cmd.ProcessState.ExitCode(); got != status {
		f.Errorf("forward ended with status %d\n%s", got, f.errs())
	}
	return f.errs()
}
