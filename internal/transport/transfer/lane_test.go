package transfer

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var here = netip.MustParseAddr("127.0.0.1")

func open(t *testing.T, at netip.Addr) *Endpoint {
	t.Helper()
	e, err := Listen(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// give sends a text to the peer of an End.
func give(ctx context.Context, e *Endpoint, peer EndpointInfo, text string) <-chan error {
	done := make(chan error, 1)
	go func() {
		c, err := e.Accept(ctx, peer)
		if err == nil {
			_, err = io.WriteString(c, text)
			_ = c.Close()
		}
		done <- err
	}()
	return done
}

// TestDirect: bytes go from one end to the other, and no second connection is accepted.
func TestDirect(t *testing.T) {
	giver, taker := open(t, here), open(t, netip.Addr{})
	given := give(t.Context(), giver, taker.Info(), "hello")
	c, err := taker.Dial(t.Context(), giver.Info())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if err != nil || string(text) != "hello" {
		t.Errorf("%q came: %v", text, err)
	}
	if err := <-given; err != nil {
		t.Error(err)
	}
	if again, err := net.Dial("tcp", giver.Info().PublicAddr.String()); err == nil {
		_ = again.Close()
		t.Error("it still listens")
	}
}

// TestRelayed: where the ends cannot reach each other, a third party copies the bytes and cannot
// read them.
func TestRelayed(t *testing.T) {
	giver, taker := open(t, netip.Addr{}), open(t, netip.Addr{})
	if _, err := taker.Dial(t.Context(), giver.Info()); err == nil {
		t.Fatal("it was reached nowhere")
	}
	given := give(t.Context(), giver, taker.Info(), "hello")
	a, err1 := net.Dial("tcp", giver.Info().LoopbackAddr.String())
	b, err2 := net.Dial("tcp", taker.Info().LoopbackAddr.String())
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	seen := &tapped{Conn: a}
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		Splice(t.Context(), seen, b)
	}()
	c, err := taker.AcceptRelayed(t.Context(), giver.Info())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if err != nil || string(text) != "hello" {
		t.Errorf("%q came: %v", text, err)
	}
	if err := <-given; err != nil {
		t.Error(err)
	}
	_ = c.Close()
	<-joined
	if strings.Contains(seen.text.String(), "hello") {
		t.Error("it can be read on the way")
	}
}

type tapped struct {
	net.Conn
	text strings.Builder
}

func (s *tapped) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.text.Write(p[:max(n, 0)])
	return n, err
}

// TestStrangers: each end accepts only the holder of the pinned key, whatever other keys a
// stranger has. Many strangers do not keep the right peer out.
//
// Promise (Networks): Data between hosts is exchanged only with the one agreed peer; a relay cannot
// read it; a host directs others to no address but its own. With transport/transfer.TestRelayed,
// transport/transfer.TestCards.
func TestStrangers(t *testing.T) {
	giver, taker, stranger := open(t, here), open(t, netip.Addr{}), open(t, here)
	given := give(t.Context(), giver, taker.Info(), "secret")
	for range 8 {
		if c, err := stranger.Dial(t.Context(), giver.Info()); err == nil {
			// TLS 1.3: the giver can only refuse after the client's side of the handshake is done
			if text, err := io.ReadAll(c); err == nil || len(text) > 0 {
				t.Errorf("a stranger got %q: %v", text, err)
			}
		}
		bare, err := tls.Dial("tcp", giver.Info().PublicAddr.String(), &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			if text, err := io.ReadAll(bare); err == nil || len(text) > 0 {
				t.Errorf("one without a key got %q: %v", text, err)
			}
		}
		mute, err := net.Dial("tcp", giver.Info().PublicAddr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer mute.Close()
	}
	c, err := taker.Dial(t.Context(), giver.Info())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(c); err != nil || string(text) != "secret" {
		t.Errorf("%q came: %v", text, err)
	}
	if err := <-given; err != nil {
		t.Error(err)
	}
	// A stranger listens where the giver is expected.
	card := giver.Info()
	card.PublicAddr = stranger.Info().PublicAddr
	_ = give(t.Context(), stranger, taker.Info(), "lies")
	if _, err := taker.Dial(t.Context(), card); err == nil || !strings.Contains(err.Error(), errWrongPeer.Error()) {
		t.Errorf("somebody else is taken for the giver: %v", err)
	}
}

// TestNobody: waiting in vain ends in time, with an error.
func TestNobody(t *testing.T) {
	giver, taker := open(t, here), open(t, netip.Addr{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := giver.Accept(ctx, taker.Info()); err == nil {
		t.Error("somebody came")
	}
}

// TestCards: a host cannot direct others to another host.
func TestCards(t *testing.T) {
	own := netip.MustParseAddr("10.8.1.2")
	place := func(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
	good := EndpointInfo{Fingerprint: strings.Repeat("ab", 32), PublicAddr: place("10.8.1.2:4000"),
		LoopbackAddr: place("127.0.0.1:4001")}
	nowhere := good
	nowhere.PublicAddr = netip.AddrPort{}
	for _, c := range []EndpointInfo{good, nowhere} {
		if err := c.Check(own); err != nil {
			t.Error(err)
		}
	}
	for name, change := range map[string]func(*EndpointInfo){
		"no print":       func(c *EndpointInfo) { c.Fingerprint = "" },
		"a short print":  func(c *EndpointInfo) { c.Fingerprint = "abcd" },
		"another host":   func(c *EndpointInfo) { c.PublicAddr = place("10.8.1.3:22") },
		"loopback":       func(c *EndpointInfo) { c.PublicAddr = place("127.0.0.1:22") },
		"no port":        func(c *EndpointInfo) { c.PublicAddr = place("10.8.1.2:0") },
		"back elsewhere": func(c *EndpointInfo) { c.LoopbackAddr = place("10.8.1.3:22") },
		"no way back":    func(c *EndpointInfo) { c.LoopbackAddr = netip.AddrPort{} },
	} {
		c := good
		change(&c)
		if c.Check(own) == nil {
			t.Errorf("%s: %+v is taken", name, c)
		}
	}
}
