package reach

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/problem"
)

// lying is output of a host that imitates an error of ssh.
const lying = `sudo: a password is required
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
Host key verification failed.
root@sv2: Permission denied (publickey).
ssh: Could not resolve hostname sv2: Name or service not known
`

// sshdWith is sshd with more settings.
func sshdWith(t *testing.T, settings string) (b *bench, dir string) {
	t.Helper()
	b, dir = sshd(t)
	must(t, os.WriteFile(filepath.Join(dir, "lying"), []byte(lying), 0o644))
	text, err := os.ReadFile(filepath.Join(dir, "sshd_config"))
	must(t, err)
	settings = strings.ReplaceAll(settings, "DIR", dir)
	must(t, os.WriteFile(filepath.Join(dir, "sshd_config"), []byte(settings+string(text)), 0o600))
	return b, dir
}

// misled checks that an error contains no diagnosis that comes from the output of a host.
func misled(t *testing.T, err error) {
	t.Helper()
	for _, word := range []string{"another machine answers", "ssh-keygen", "refuses the login", "authorized_keys",
		"is unknown", "cannot be resolved", "NOPASSWD"} {
		if strings.Contains(err.Error(), word) {
			t.Errorf("the words of a host have decided: %v", err)
		}
	}
}

// dies connects to a host whose program ends at once. The error must say so, without any output of
// the host.
func dies(t *testing.T, b *bench) {
	t.Helper()
	l, err := b.enter()
	must(t, err)
	_, err = io.ReadAll(l)
	must(t, err)
	err = l.Explain(io.ErrUnexpectedEOF)
	wants(t, err, problem.Failed, "the connection has ended")
	misled(t, err)
}

// TestWordsOfAHost checks that a diagnosis comes from messages of ssh, and not from a banner or
// other output of the host.
//
// Promise (Other hosts): What a host prints does not decide the advice that a user gets about keys
// or login.
func TestWordsOfAHost(t *testing.T) {
	t.Run("banner, and a program that dies", func(t *testing.T) {
		b, _ := sshdWith(t, "Banner DIR/lying\n")
		b.program("far", "exit 3")
		dies(t, b)
	})
	t.Run("words of the program", func(t *testing.T) {
		b, dir := sshdWith(t, "")
		b.program("far", "cat "+dir+"/lying >&2; exit 3")
		dies(t, b)
	})
	for what, command := range map[string]string{"status 1": "cat DIR/lying >&2; exit 1",
		"status 0": "cat DIR/lying; exit 0"} {
		t.Run("a login that ends, with "+what, func(t *testing.T) {
			b, _ := sshdWith(t, "Banner DIR/lying\nForceCommand "+command+"\n")
			_, err := b.enter()
			wants(t, err, problem.Unable, "its login shell exited ("+what+")", "nologin", "ssh sv2")
			misled(t, err)
		})
	}
	t.Run("the end of a connection", func(t *testing.T) {
		b := newBench(t)
		b.says("Received disconnect from 10.8.1.2 port 2222:2: farewell\n"+strings.TrimSpace(lying), 255)
		_, err := b.dial()
		wants(t, err, problem.Failed, "was not reached")
		misled(t, err)
	})
	t.Run("a jump host", func(t *testing.T) {
		b := newBench(t)
		b.program("ssh", `echo "ops@jump: Permission denied (publickey)." >&2; while [ "$1" != -E ]; do shift; done; printf "kex_exchange_identification: Connection closed by remote host\r\nConnection closed by UNKNOWN port 65535\r\n" > "$2"; exit 255`)
		_, err := b.dial()
		wants(t, err, problem.Failed, "was not reached", "ops@jump: Permission denied (publickey)")
	})
}

// says makes ssh print a message of its own, and exit.
func (b *bench) says(text string, status int) {
	b.Helper()
	must(b, os.WriteFile(filepath.Join(b.bin, "said"), []byte(text+"\n"), 0o644))
	b.program("ssh", `while [ "$1" != -E ]; do shift; done; cat `+b.bin+`/said > "$2"; exit `+fmt.Sprint(status))
}

// TestSilentLogin checks that a login without output is distinguished from one that has ended.
func TestSilentLogin(t *testing.T) {
	loginTimeout = 300 * time.Millisecond
	defer func() { loginTimeout = 30 * time.Second }()
	b, _ := sshdWith(t, "ForceCommand sleep 1000\n")
	_, err := b.enter()
	wants(t, err, problem.Failed, "accepted the login but sent nothing within 300ms")
}

// TestStalls checks that a stalled connection is recognised by the message of ssh.
func TestStalls(t *testing.T) {
	b := newBench(t)
	b.program("ssh", `for a; do last=$a; done; while [ "$1" != -E ]; do shift; done; exec 9> "$2"; sh -c "$last" 9>&-; printf "Timeout, server 10.8.1.2 not responding.\r\n" >&9`)
	l, err := b.dial()
	must(t, err)
	must(t, l.ends.to.Close())
	_, err = io.ReadAll(l)
	must(t, err)
	wants(t, l.Explain(io.ErrUnexpectedEOF), problem.Failed, "the connection stalled")
}

// TestLateLine checks that a limit which ends while the first line arrives either fails the connection
// or leaves it open: it never returns one that is being closed.
func TestLateLine(t *testing.T) {
	begin := func() (*Conn, *os.File) {
		var near, far [4]*os.File
		for i := range near {
			r, w, err := os.Pipe()
			must(t, err)
			near[i], far[i] = r, w
		}
		l := &Conn{ends: ends{far[0], near[1], near[2], near[3]}, from: bufio.NewReader(near[1]),
			ended: make(chan struct{}), kill: func() {}}
		close(l.ended)
		_, err := far[1].WriteString(linePrefix + " have\n")
		must(t, err)
		_, err = l.from.Peek(1) // the line has arrived
		must(t, err)
		return l, near[0]
	}

	l, _ := begin()
	l.giveUp(tooLate)
	if err := l.handshake(nil); err == nil {
		t.Error("a connection that is being closed was returned")
	}
	l, to := begin()
	must(t, l.handshake(nil))
	l.giveUp(tooLate)
	if _, err := l.Write([]byte("x")); err != nil {
		t.Errorf("a connection that has begun was closed: %v", err)
	}
	must(t, l.Close())
	if text, err := io.ReadAll(to); string(text) != "x" {
		t.Errorf("%q %v", text, err)
	}
}
