package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"orrery/internal/control"
	"orrery/internal/site"
)

func listener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// relayed returns the address of a relay whose connections are handled by serve, and a function
// that ends the relay.
func relayed(t *testing.T, serve func(*net.TCPConn)) (address string, end func()) {
	t.Helper()
	far, near := listener(t), listener(t)
	go func() {
		for {
			c, err := far.Accept()
			if err != nil {
				return
			}
			go serve(c.(*net.TCPConn))
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Forward(ctx, near, func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", far.Addr().String())
		}, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}()
	return near.Addr().String(), func() {
		cancel()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("the relay does not end")
		}
	}
}

// TestRelayHalves: the caller sends everything and closes its sending direction before the answer
// comes.
func TestRelayHalves(t *testing.T) {
	address, end := relayed(t, func(c *net.TCPConn) {
		defer c.Close()
		text, _ := io.ReadAll(c)
		c.Write(bytes.ToUpper(text))
	})
	defer end()
	said := strings.Repeat("orrery ", 100_000)
	var calls errgroup.Group
	for i := range 50 { // many at once
		calls.Go(func() error {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			defer c.Close()
			text := fmt.Sprint(i, said)
			go func() {
				io.WriteString(c, text)
				c.(*net.TCPConn).CloseWrite()
			}()
			answer, err := io.ReadAll(c)
			if err == nil && string(answer) != strings.ToUpper(text) {
				err = fmt.Errorf("%d of %d bytes came back", len(answer), len(text))
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		t.Error(err)
	}
}

// TestRelayEnds: when the relay ends, all connections end. When one side is reset, so is the other.
func TestRelayEnds(t *testing.T) {
	address, end := relayed(t, func(c *net.TCPConn) {
		word := make([]byte, 5)
		if _, err := io.ReadFull(c, word); err == nil && string(word) == "reset" {
			c.SetLinger(0)
			c.Close()
		}
	})
	reset, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer reset.Close()
	io.WriteString(reset, "reset")
	reset.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := reset.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a reset behind the relay: %v", err)
	}
	open, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	io.WriteString(open, "x")
	end()
	open.SetReadDeadline(time.Now().Add(time.Minute))
	var late net.Error
	if _, err := open.Read(make([]byte, 1)); err == nil || errors.As(err, &late) && late.Timeout() {
		t.Errorf("after the end of the relay: %v", err)
	}
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("still listening")
	}
}

func TestListenOnLoopback(t *testing.T) {
	busy := listener(t)
	_, taken, _ := net.SplitHostPort(busy.Addr().String())
	for listen, want := range map[string]string{
		"0.0.0.0:0":          "not a loopback address",
		":8080":              "not a loopback address",
		"10.8.67.1:80":       "not a loopback address",
		"example.org:80":     "not a loopback address",
		"127.0.0.1":          "not ADDRESS:PORT",
		"127.0.0.1:http":     "not ADDRESS:PORT",
		"127.0.0.1:65536":    "not ADDRESS:PORT",
		"127.0.0.1:" + taken: "is already in use",
		"":                   "port " + taken + " of 127.0.0.1 is already in use",
	} {
		l, err := ListenOnLoopback(listen, taken)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", listen, err)
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "localhost:0", "127.0.0.2:0"} {
		l, err := ListenOnLoopback(listen, "80")
		if err != nil {
			t.Errorf("%q: %v", listen, err)
			continue
		}
		l.Close()
	}
}

func TestWayTo(t *testing.T) {
	var c control.Session
	s := &site.Site{Nodes: []site.Node{{Name: "portal"}}}
	for target, want := range map[string]string{
		"portal": "not NODE:PORT", "portal:": "not NODE:PORT", "portal:0": "not NODE:PORT", "portal:http": "not NODE:PORT",
		"portel:80": "did you mean portal?", ":80": "no node",
	} {
		if _, err := FindNodePort(&c, s, target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", target, err)
		}
	}
	if w, err := FindNodePort(&c, s, "portal:80"); err != nil || w.Port != "80" || w.node.Name != "portal" {
		t.Errorf("%+v %v", w, err)
	}
}
