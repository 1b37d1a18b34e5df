package login

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// far is a machine with a fake SSH server that handles each session in the same way.
func far(t *testing.T, login string, do func(ch ssh.Channel, requests <-chan *ssh.Request)) Server {
	t.Helper()
	dir := t.TempDir()
	hers := key(t, filepath.Join(dir, "host"))
	d := Server{Place: "db", User: login, Key: key(t, filepath.Join(dir, "mine")), Host: hers.PublicKey()}
	d.Dial = func(context.Context) (net.Conn, error) {
		near, file, err := pair()
		if err != nil {
			return nil, err
		}
		defer file.Close()
		end, err := net.FileConn(file)
		if err != nil {
			return nil, err
		}
		settings := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
			return nil, nil
		}}
		settings.AddHostKey(hers)
		go func() {
			conn, channels, requests, err := ssh.NewServerConn(end, settings)
			if err != nil {
				return
			}
			go ssh.DiscardRequests(requests)
			if _, _, err := conn.OpenChannel("session", nil); err == nil {
				t.Error("it may run commands here")
			}
			for n := range channels {
				ch, requests, err := n.Accept()
				if err != nil {
					return
				}
				go do(ch, requests)
			}
		}()
		t.Cleanup(func() { _ = end.Close() })
		return near, nil
	}
	return d
}

func say(t *testing.T, ch ssh.Channel, stdout, stderr string, status uint32) {
	t.Helper()
	_, _ = ch.Write([]byte(stdout))
	_, _ = ch.Stderr().Write([]byte(stderr))
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
	_ = ch.Close()
}

// TestLies checks that what a machine sends is limited, and only used as text.
func TestLies(t *testing.T) {
	for name, try := range map[string]struct {
		do   func(ch ssh.Channel, requests <-chan *ssh.Request)
		want string
	}{
		"a password": {func(ch ssh.Channel, requests <-chan *ssh.Request) {
			<-requests
			say(t, ch, "", "sudo: a password is required\n", 1)
		}, "cannot become root without a password"},
		"no number": {func(ch ssh.Channel, requests <-chan *ssh.Request) {
			<-requests
			say(t, ch, "-1\n", "", 0)
		}, `"-1" instead of a process ID`},
		"a long number": {func(ch ssh.Channel, requests <-chan *ssh.Request) {
			<-requests
			for {
				if _, err := ch.Write([]byte(strings.Repeat("9", 1000))); err != nil {
					return
				}
			}
		}, "instead of a process ID"},
		"no end": {func(ch ssh.Channel, requests <-chan *ssh.Request) {
			<-requests
			_, _ = ch.Write([]byte("77\n"))
			_ = ch.Close()
		}, "did not report an exit status"},
		"a flood": {func(ch ssh.Channel, requests <-chan *ssh.Request) {
			<-requests
			_, _ = ch.Write([]byte("77\n"))
			for {
				if _, err := ch.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		}, "it printed more than 64 KiB"},
		"nothing": {func(ssh.Channel, <-chan *ssh.Request) {}, "that is enough"},
	} {
		t.Run(name, func(t *testing.T) {
			c := enter(t, far(t, "debian", try.do))
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("that is enough"))
			defer cancel()
			began := time.Now()
			_, err := host.Output(ctx, c, host.Command{Args: []string{"true"}}, 64<<10)
			if err == nil || !strings.Contains(err.Error(), try.want) {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestSudo checks that a login user other than root switches users by sudo only.
func TestSudo(t *testing.T) {
	asked := make(chan string, 1)
	c := enter(t, far(t, "debian", func(ch ssh.Channel, requests <-chan *ssh.Request) {
		var x struct{ Command string }
		_ = ssh.Unmarshal((<-requests).Payload, &x)
		asked <- x.Command
		say(t, ch, "77\n", "", 0)
	}))
	for user, want := range map[string]string{
		"": "exec 'sudo' '-n' '-u' 'root' '--' '/bin/sh'", "postgres": "exec 'sudo' '-n' '-u' 'postgres' '--' '/bin/sh'",
		"debian": "exec '/bin/sh'",
		"-s":     "exec 'sudo' '-n' '-u' './-s' '--' '/bin/sh'",
	} {
		must(t, c.Run(t.Context(), host.Command{Args: []string{"true"}, User: user}))
		if got := <-asked; !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s", user, got)
		}
	}
	var p *problem.Problem
	none := enter(t, far(t, "root", func(ch ssh.Channel, requests <-chan *ssh.Request) {
		<-requests
		say(t, ch, "", "/bin/sh: not found\n", 127)
	}))
	if err := none.Run(t.Context(), host.Command{Args: []string{"true"}}); !errors.As(err, &p) ||
		!strings.Contains(err.Error(), "cannot run commands") {
		t.Errorf("%v", err)
	}
}
