package network

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// port is where every place answers with the caller's address as it sees it.
const port = "7"

// unheard is the time without an arrival after which a packet counts as dropped. Packets that are
// not dropped arrive in well under a millisecond here. Where an answer is expected, a busy machine
// may take longer.
const (
	unheard = 200 * time.Millisecond
	timeout = 10 * time.Second
)

// answer makes this namespace answer callers.
func answer() error {
	l, err := net.Listen("tcp4", ":"+port)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			io.WriteString(c, host)
			c.Close()
		}
	}()
	return nil
}

// call returns the address that the callee sees.
func call(address string, within time.Duration) (string, error) {
	c, err := net.DialTimeout("tcp4", net.JoinHostPort(address, port), within)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(timeout))
	seen, err := io.ReadAll(c)
	return string(seen), err
}

// reaches checks that packets from the place arrive at an address, with the given source address.
func (p *place) reaches(t *testing.T, address, as string) {
	t.Helper()
	p.do(t, func() error {
		seen, err := call(address, timeout)
		if err == nil && seen != as {
			err = fmt.Errorf("%s sees %s instead of %s", address, seen, as)
		}
		return err
	})
}

// misses checks that packets from the place do not arrive at an address.
func (p *place) misses(t *testing.T, addresses ...string) {
	t.Helper()
	var calls errgroup.Group
	for _, address := range addresses {
		calls.Go(func() error {
			return p.in(func() error {
				if seen, err := call(address, unheard); err == nil {
					return fmt.Errorf("reached %s (as %s), which should be out of reach", address, seen)
				}
				return nil
			})
		})
	}
	must(t, calls.Wait())
}

// hears returns a function that returns the source of the next datagram that arrives at the place.
func (p *place) hears(t *testing.T) func() string {
	t.Helper()
	var c net.PacketConn
	p.do(t, func() (err error) {
		c, err = net.ListenPacket("udp4", ":"+port)
		return err
	})
	return func() string {
		c.SetReadDeadline(time.Now().Add(timeout))
		_, from, err := c.ReadFrom(make([]byte, 16))
		must(t, err)
		host, _, err := net.SplitHostPort(from.String())
		must(t, err)
		return host
	}
}

// says sends a datagram, without expecting an answer.
func (p *place) says(t *testing.T, address string) {
	t.Helper()
	p.do(t, func() error {
		c, err := net.Dial("udp4", net.JoinHostPort(address, port))
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("hello"))
		return err
	})
}
