// Package login is the host.Runner of a machine that has an SSH server and nothing of Orrery: any
// system with a POSIX shell and sudo.
//
// What speaks at the far end may be anybody who is root there. It is let in by nothing but the host
// key that the machine was given, what it says is bounded, and nobody waits for it longer than the
// context of a call says.
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
	"orrery/internal/problem"
)

// A Door is where and how a machine is entered.
type Door struct {
	Place string // what messages call the machine
	Dial  func(ctx context.Context) (net.Conn, error)
	User  string        // as whom; one who is not root becomes so by sudo
	Key   ssh.Signer    // by which he is let in
	Host  ssh.PublicKey // by which the machine is known
}

// maxSessions is how many commands are run at once along one connection: of the ten that sshd
// allows where nobody says otherwise, some are for ending others.
const maxSessions = 8

// A Client is a connection to a machine, for any number of calls.
type Client struct {
	door Door
	conn ssh.Conn
	ssh  *ssh.Client
	turn chan struct{}
	gone chan struct{} // closed when the connection has ended

	ended atomic.Pointer[time.Time] // when a session ended last; nil: none has
}

var _ host.Runner = (*Client)(nil)

// errOther is that of a machine with another host key.
var errOther = errors.New("its SSH host key is not the one that it was given")

// Enter connects to a machine. If nobody answers, or not as SSH servers do, the error is that of
// the network and not a problem: the machine may be about to boot.
func (d Door) Enter(ctx context.Context) (*Client, error) {
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
				return errOther
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
	case err != nil && (other || noneCommon(err)):
		raw.Close() //nolint:errcheck // nothing was asked
		return nil, problem.New(problem.Failed, "node %s: who answers as its SSH server is not known: %v", d.Place, errOther).
			Try("see at its console what has changed the keys in /etc/ssh; orrery down %[1]s and orrery up make the node anew",
				d.Place)
	case err != nil && refused(err):
		raw.Close() //nolint:errcheck // nothing was asked
		return nil, &NotYet{problem.New(problem.Failed, "node %s does not let %s in", d.Place, d.User).Because(err).
			Try("see that the system on its disk sets itself up by cloud-init; `login` of the image says as whom the host comes")}
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

// A NotYet is the error of a machine that may let its user in later: a guest that boots has an SSH
// server before it has users.
type NotYet struct{ *problem.Problem }

// Unwrap returns the problem.
func (n *NotYet) Unwrap() error { return n.Problem }

// refused reports whether the machine has answered, is the right one, and does not let us in.
func refused(err error) bool {
	var auth *ssh.ServerAuthError
	return errors.As(err, &auth) || bytes.Contains([]byte(err.Error()), []byte("unable to authenticate"))
}

// noneCommon reports whether the machine has no host key of the right kind.
func noneCommon(err error) bool {
	var none *ssh.AlgorithmNegotiationError
	return errors.As(err, &none) && bytes.Contains([]byte(err.Error()), []byte("host key"))
}

// Close ends the connection, and with it all calls.
func (c *Client) Close() error { return c.conn.Close() }

// Ping asks for a sign of life.
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
		return errGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errGone = errors.New("the connection to its SSH server has ended")

// admissionTimeout is how long a server may take no further session although none of ours ends
// (MaxSessions of sshd_config(5)). It may not have noticed yet that one has.
const admissionTimeout = 5 * time.Second

// admitted begins a session as soon as the server takes one.
func (c *Client) admitted(ctx context.Context) (*session, error) {
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
		if err := host.Pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// open begins a session.
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
		return nil, errGone
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

// A session is a command at the far end.
type session struct {
	ssh.Channel
	once   sync.Once
	over   chan struct{} // closed when it has ended
	told   bool          // how
	status int
	signal string
}

// listen waits for what the far end says of how the command ended.
func (s *session) listen(requests <-chan *ssh.Request) {
	for r := range requests {
		switch r.Type {
		case "exit-status":
			var x struct{ Status uint32 }
			if ssh.Unmarshal(r.Payload, &x) == nil {
				s.end(true, int(x.Status&0xff), "")
			}
		case "exit-signal":
			var x struct {
				Signal     string
				CoreDumped bool
				Error      string
				Lang       string
			}
			if ssh.Unmarshal(r.Payload, &x) == nil {
				s.end(true, -1, x.Signal[:min(len(x.Signal), 16)])
			}
		}
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
	s.end(false, -1, "")
}

func (s *session) end(told bool, status int, signal string) {
	s.once.Do(func() {
		s.told, s.status, s.signal = told, status, signal
		close(s.over)
	})
}

// err says how it ended.
func (s *session) err() error {
	switch {
	case !s.told:
		return errors.New("its SSH server did not say how it ended")
	case s.signal != "":
		return fmt.Errorf("it was ended by signal %q", s.signal)
	case s.status != 0:
		return fmt.Errorf("exit status %d", s.status)
	}
	return nil
}
