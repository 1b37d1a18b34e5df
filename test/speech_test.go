package test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// typist is a program in a node that types into the user's terminal, through each of its streams
// and /dev/tty.
const typist = `
$| = 1;
sub typed { my $f = shift; for my $c (split //, "evil\n") { my $x = $c; ioctl($f, 0x5412, $x) or return 0 } return 1 }
for ([0, *STDIN], [1, *STDOUT], [2, *STDERR]) { print "typed by $_->[0]\n" if typed($_->[1]) }
if (open(my $t, "+<", "/dev/tty")) { print "typed by /dev/tty\n" if typed($t) }
print "\e]0;evil title\atried\n";
`

// answerer answers each request with a redirect to the loopback address, by the name that has two
// addresses.
const answerer = `
use Socket;
socket(S, PF_INET, SOCK_STREAM, 6) && setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1) && bind(S, sockaddr_in(8080, inet_aton("127.0.0.1"))) && listen(S, 9) or die $!;
while (accept(C, S)) {
	sysread(C, $b, 4096);
	print C "HTTP/1.1 302 Found\r\nLocation: http://localhost:$ARGV[0]/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	close C;
}
`

// TestSpeech: what a node prints, answers and sends reaches neither the user's terminal nor the
// host's loopback nor the host's files.
func TestSpeech(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }),
		ReadHeaderTimeout: time.Second}
	go server.Serve(l) //nolint:errcheck // it ends with the test
	defer server.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())

	s := newSite(t, "it-speech", `
[network.lan]
subnet = "10.99.77.0/24"
gateway = "10.99.77.1"
[image.debian]
suite = "bookworm"
[node.one]
id = 10
roles = ["evil"]
[node.two]
id = 11
`, files{
		"roles/evil/role.toml": `
services = ["evil.service"]
[[file]]
path = "/srv/answerer"
source = "answerer"
[[file]]
path = "/srv/typist"
source = "typist"
[[file]]
path = "/etc/systemd/system/evil.service"
source = "evil.service"
[[step]]
name = "leave a daemon"
when = "boot"
script = "setsid sleep 600 & echo left"
timeout = "60s"
[[health]]
tcp = 8080
`,
		"roles/evil/answerer": answerer,
		"roles/evil/typist":   typist,
		"roles/evil/evil.service": "[Service]\nExecStart=/usr/bin/perl /srv/answerer " + port +
			"\n[Install]\nWantedBy=multi-user.target\n",
	})
	began := time.Now()
	s.do("up")
	t.Logf("up, with a step that leaves a daemon, took %s", time.Since(began).Round(time.Second/10))

	t.Run("Health", func(t *testing.T) {
		s := s.of(t)
		s.edit("roles/evil/role.toml", "tcp = 8080", `http = "http://localhost:8080/"`)
		r := s.run("status", "--probe", "one")
		if r.status != 11 || !strings.Contains(r.out, "302") || !strings.Contains(r.out, "do not follow redirects") {
			t.Errorf("status %d\n%s%s", r.status, r.out, r.errs)
		}
		if reached.Load() != 0 {
			t.Error("the redirect of a node led to the host's loopback")
		}
	})
	for _, args := range [][]string{
		{"exec", "one", "--", "perl", "/srv/typist"}, {"shell", "one", "--", "perl", "/srv/typist"},
	} {
		t.Run(args[0], func(t *testing.T) {
			sent, left := s.of(t).atTerminal(args...)
			if !strings.Contains(sent, "tried") {
				t.Errorf("the terminal is sent %q", sent)
			}
			if left != 0 {
				t.Errorf("%d bytes were typed into the operator's terminal: %q", left, sent)
			}
			if args[0] == "exec" && (strings.Contains(sent, "\x1b") || strings.Contains(sent, "typed by")) {
				t.Errorf("the terminal is sent %q", sent)
			}
		})
	}
	t.Run("Copy", func(t *testing.T) { hostileCopy(s.of(t)) })
}

// atTerminal runs the program on a terminal. It returns the terminal's output, and how much the
// program put into the terminal's input.
func (s *site) atTerminal(args ...string) (sent string, typed int) {
	s.Helper()
	operator, tty, err := pty.Open()
	if err != nil {
		s.Fatal(err)
	}
	defer operator.Close()
	defer tty.Close()
	var out host.TailBuffer
	go io.Copy(&out, operator) //nolint:errcheck // it ends with the terminal
	cmd, _, _ := s.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	impatient := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer impatient.Stop()
	if err := cmd.Run(); err != nil {
		s.Errorf("orrery %s: %v", strings.Join(args, " "), err)
	}
	const over = "that was all"
	if _, err := tty.WriteString(over); err != nil {
		s.Fatal(err)
	}
	s.eventually(func() error {
		if !strings.Contains(out.String(), over) {
			return errors.New("not all is read that was sent to the terminal")
		}
		return nil
	})
	typed, err = unix.IoctlGetInt(int(tty.Fd()), unix.TIOCINQ)
	if err != nil {
		s.Error(err)
	}
	return strings.TrimSuffix(out.String(), over), typed
}

// hostileCopy copies from a node whose tar is replaced.
func hostileCopy(s *site) {
	dir := s.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("of the host"), 0o600); err != nil {
		s.Fatal(err)
	}
	into := filepath.Join(dir, "into")
	if err := os.Mkdir(into, 0o755); err != nil {
		s.Fatal(err)
	}
	// The real tar with a set-user-ID program, a named pipe and links. A copied file belongs to the
	// caller.
	s.sh("one", `mkdir -p /srv/x && cp /bin/true /srv/x/suid && chmod 4755 /srv/x/suid && mkfifo /srv/x/pipe && ln -s /etc/shadow /srv/x/link`)
	s.run("cp", "one:/srv/x", into).want(1, "x/pipe is a named pipe")
	if info, err := os.Stat(filepath.Join(into, "x/suid")); err != nil || info.Mode()&os.ModeSetuid != 0 {
		s.Errorf("of a set-user-ID program came %v: %v", info, err)
	}
	s.do("cp", "one:/srv/x/suid", "two:/srv/there")
	if got := s.on("two", "stat", "-c", "%a", "/srv/there"); got != "755" {
		s.Errorf("between nodes came a file of mode %s", got)
	}
	// A fake tar that writes a link, and then a file through it.
	s.sh("one", fmt.Sprintf(`mkdir -p /srv/y /srv/a /srv/b/y && ln -s %q /srv/a/y && echo evil > /srv/b/y/victim
tar -C /srv/a -cf /srv/false.tar y && tar -C /srv/b -rf /srv/false.tar y/victim
printf '#!/bin/sh\ncat /srv/false.tar\n' > /usr/local/bin/tar && chmod 755 /usr/local/bin/tar`, dir))
	s.run("cp", "one:/srv/y", into).want(1, "did not send a valid file tree")
	s.run("cp", "one:/srv/y", "two:/srv/y").want(1, "did not send a valid file tree")
	if text, err := os.ReadFile(victim); err != nil || string(text) != "of the host" {
		s.Errorf("the host's file holds %q: %v", text, err)
	}
	if out, err := exec.Command("find", dir, "-type", "b", "-o", "-type", "c", "-o", "-perm", "/6000", "-o", "-name",
		".orrery*").Output(); err != nil || len(out) > 0 {
		s.Errorf("on the host there are %s (%v)", out, err)
	}
}
