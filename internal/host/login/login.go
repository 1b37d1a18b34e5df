// Package login implements host.Runner for a machine that has only an SSH server.
//
// The machine may run any system with a POSIX shell and sudo. The peer is not trusted, because its
// root user may be anybody. It is authenticated only by the host key that the machine was given.
// All that it sends is limited, and no call waits longer for it than its context allows.
package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host"
	"orrery/internal/host/waits"
	"orrery/internal/problem"
)

// A Server describes how to log in to a machine.
type Server struct {
	Place string // the machine's name in messages
	Dial  func(ctx context.Context) (net.Conn, error)
	User  string        // the login user; a user other than root becomes root by sudo
	Key   ssh.Signer    // authenticates the user
	Host  ssh.PublicKey // the machine's host key
}

// maxSessions limits the commands that run at once on one connection. By default sshd allows ten
// sessions; the others are for killing commands.
const maxSessions = 8

// A Client is a connection to a machine, for any number of calls.
type Client struct {
	door Server
	conn ssh.Conn
	ssh  *ssh.Client
	turn chan struct{}
	gone chan struct{} // closed when the connection has ended

	ended atomic.Pointer[time.Time] // when the last session ended, or nil if none has
}

var _ host.Runner = (*Client)(nil)

// errWrongHostKey is the error for a machine with another host key.
var errWrongHostKey = errors.New("the SSH host key is not the one that the node was given")

// Connect connects to a machine. If there is no answer, or not one of an SSH server, it returns the
// error of the network and not a problem. In this case the machine may still be booting.
func (d Server) Connect(ctx context.Context) (*Client, error) {
	raw, err := d.Dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	other := false
	conn, channels, requests, err := ssh.NewClientConn(raw, d.Place, &ssh.ClientConfig{
		User: d.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(d.Key)}, ClientVersion: "SSH-2.0-orrery",
		HostKeyAlgorithms: []string{d.Host.Type()},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if other = !bytes.Equal(key.Marshal(), d.Host.Marshal()); other {
				return errWrongHostKey
			}
			return nil
		},
	})
	if !stop() && err == nil {
		err = conn.Close()
	}
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), raw.Close())
	case err != nil && (other || noCommonHostKey(err)):
		raw.Close() //nolint:errcheck // nothing was asked
		return nil, problem.New(problem.Failed, "node %s: its SSH server is not trusted: %v", d.Place,
			errWrongHostKey).
			Try("check on its console what changed the keys in /etc/ssh; orrery down %[1]s and orrery up recreate it",
				d.Place)
	case err != nil && isRefused(err):
		raw.Close() //nolint:errcheck // nothing was asked
		return nil, &NotReadyError{problem.New(problem.Failed, "node %s rejects the login of user %s", d.Place, d.User).
			Because(err).
			Try("check that the system on its disk runs cloud-init; `login` of the image names the user")}
	case err != nil:
		raw.Close() //nolint:errcheck // nothing was asked
		return nil, err
	}
	c := &Client{door: d, conn: conn, ssh: ssh.NewClient(conn, channels, requests),
		turn: make(chan struct{}, maxSessions), gone: make(chan struct{})}
	go func() {
		_ = conn.Wait()
		close(c.gone)
	}()
	return c, nil
}

// A NotReadyError is the error of a machine that rejects a login now but may accept it later. A booting
// guest has an SSH server before it has users.
type NotReadyError struct{ *problem.Problem }

// Unwrap returns the problem.
func (n *NotReadyError) Unwrap() error { return n.Problem }

// isRefused reports whether the right machine has answered and rejected the login.
func isRefused(err error) bool {
	var auth *ssh.ServerAuthError
	return errors.As(err, &auth) || bytes.Contains([]byte(err.Error()), []byte("unable to authenticate"))
}

// noCommonHostKey reports whether the machine has no host key of the expected type.
func noCommonHostKey(err error) bool {
	var none *ssh.AlgorithmNegotiationError
	return errors.As(err, &none) && bytes.Contains([]byte(err.Error()), []byte("host key"))
}

// Close ends the connection and all its calls.
func (c *Client) Close() error { return c.conn.Close() }

// Ping waits for a reply of the SSH server.
func (c *Client) Ping(ctx context.Context) error {
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.ssh.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		return err
	case <-c.gone:
		return errConnectionLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errConnectionLost = errors.New("the connection to the SSH server was lost")

// admissionTimeout limits how long a server may reject a further session although none of this
// client's sessions ends (MaxSessions of sshd_config(5)). A busy machine may notice the end of a
// session many seconds late.
const admissionTimeout = 30 * time.Second

// openWhenAdmitted opens a session as soon as the server accepts one.
func (c *Client) openWhenAdmitted(ctx context.Context) (*session, error) {
	var stop func() // ends the report of the wait
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	for began := time.Now(); ; {
		s, err := c.open(ctx)
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || refused.Reason != ssh.ConnectionFailed {
			return s, err
		}
		if ended := c.ended.Load(); time.Since(began) > admissionTimeout &&
			(ended == nil || time.Since(*ended) > admissionTimeout) {
			return nil, err
		}
		if stop == nil {
			stop = waits.ReportSlow(ctx, c.door.Place+": waiting until its SSH server accepts a further session")
		}
		if err := host.Sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// open opens a session.
func (c *Client) open(ctx context.Context) (*session, error) {
	type opened struct {
		channel  ssh.Channel
		requests <-chan *ssh.Request
		err      error
	}
	answer := make(chan opened, 1)
	go func() {
		ch, requests, err := c.ssh.OpenChannel("session", nil)
		answer <- opened{ch, requests, err}
	}()
	select {
	case o := <-answer:
		if o.err != nil {
			return nil, o.err
		}
		s := &session{Channel: o.channel, over: make(chan struct{})}
		go s.listen(o.requests)
		return s, nil
	case <-c.gone:
		return nil, errConnectionLost
	case <-ctx.Done():
		go func() {
			if o := <-answer; o.err == nil {
				go ssh.DiscardRequests(o.requests)
				_ = o.channel.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// A session is a command on the machine.
type session struct {
	ssh.Channel
	once   sync.Once
	over   chan struct{} // closed when the command has ended
	told   bool          // the server sent how it ended
	status int
	signal string
}

// listen waits until the server sends how the command ended.
func (s *session) listen(requests <-chan *ssh.Request) {
	for r := range requests {
		switch r.Type {
		case "exit-status":
			var x struct{ Status uint32 }
			if ssh.Unmarshal(r.Payload, &x) == nil {
				s.finish(true, int(x.Status&0xff), "")
			}
		case "exit-signal":
			var x struct {
				Signal     string
				CoreDumped bool
				Error      string
				Lang       string
			}
			if ssh.Unmarshal(r.Payload, &x) == nil {
				s.finish(true, -1, x.Signal[:min(len(x.Signal), 16)])
			}
		}
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
	s.finish(false, -1, "")
}

func (s *session) finish(told bool, status int, signal string) {
	s.once.Do(func() {
		s.told, s.status, s.signal = told, status, signal
		close(s.over)
	})
}

// err returns how the command ended, or nil if it succeeded.
func (s *session) err() error {
	switch {
	case !s.told:
		return errors.New("the SSH server did not report an exit status")
	case s.signal != "":
		return fmt.Errorf("it was killed by signal %q", s.signal)
	case s.status != 0:
		return fmt.Errorf("exit status %d", s.status)
	}
	return nil
}
