package spead

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// pairOf returns a sender and its receiver on the loopback interface.
func pairOf(t *testing.T, o SendOptions, r ReceiveOptions) (*Sender, *Receiver) {
	t.Helper()
	// The test needs several consecutive ports, which the system does not assign. A few attempts
	// find free ones.
	var receiver *Receiver
	var err error
	for try := range 20 {
		r.At = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), free(t).Port()&^15-uint16(16*try))
		if receiver, err = Listen(r); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(receiver.Close)
	o.To = r.At
	sender, err := Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	return sender, receiver
}

// TestLoopback: all data sent slowly is received by one or several sockets, and both ends have the
// same counts.
func TestLoopback(t *testing.T) {
	for name, c := range map[string]struct {
		sockets, heap, packet int
		gso                   bool
	}{
		"one":         {1, 100_000, 1472, true},
		"three":       {3, 100_000, 1472, true},
		"small":       {1, 10, 512, true},
		"without gso": {1, 100_000, 8972, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := pairOf(t, SendOptions{Sockets: c.sockets, Heap: c.heap, Packet: c.packet, GSO: c.gso},
				ReceiveOptions{Sockets: c.sockets, Buffer: 4 << 20, Packet: 9200})
			got := make(chan Received, 1)
			go func() {
				g, err := r.Receive(context.Background(), 10*time.Second, 2*time.Second)
				if err != nil {
					t.Error(err)
				}
				got <- g
			}()
			sent, err := s.Send(context.Background(), 30, time.Minute, 1e9)
			if err != nil {
				t.Fatal(err)
			}
			s.End(EndAttempts)
			g := <-got
			if sent.Heaps != 30 || g.Heaps != 30 || g.Packets != sent.Packets || g.Data != sent.Bytes ||
				g.InWhole != sent.Packets || g.Stopped != c.sockets {
				t.Errorf("sent %+v\n got %+v", sent, g)
			}
		})
	}
}

// TestSession: trials follow one another with separate counts.
func TestSession(t *testing.T) {
	s, r := pairOf(t, SendOptions{Heap: 20_000, Packet: 1472, GSO: true}, ReceiveOptions{Buffer: 4 << 20, Packet: 9200})
	orders, give := io.Pipe()
	answers, answer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(context.Background(), orders, answer) }()
	lines := json.NewDecoder(answers)
	for range 3 {
		_, _ = io.WriteString(give, "begin\n")
		var ready Ready
		if err := lines.Decode(&ready); err != nil || !ready.Ready {
			t.Fatal(ready, err)
		}
		var out bytes.Buffer
		if err := s.Serve(context.Background(), strings.NewReader(`{"rate": 2e8, "seconds": 0.02}`), &out); err != nil {
			t.Fatal(err)
		}
		var sent Sent
		var got Received
		if err := json.Unmarshal(out.Bytes(), &sent); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(give, "end\n")
		if err := lines.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if sent.Heaps < 10 || got.Heaps != sent.Heaps || got.Packets != sent.Packets {
			t.Errorf("sent %+v\n got %+v", sent, got)
		}
	}
	give.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestOrders: an invalid order is an error.
func TestOrders(t *testing.T) {
	s, r := pairOf(t, SendOptions{Heap: 20_000, Packet: 1472}, ReceiveOptions{Buffer: 4 << 20, Packet: 9200})
	for _, text := range []string{"{}", "x", `{"rate": -1, "seconds": 1}`} {
		if err := s.Serve(context.Background(), strings.NewReader(text), io.Discard); err == nil {
			t.Errorf("%s was taken by the sender", text)
		}
	}
	if err := r.Serve(context.Background(), strings.NewReader("begin\nstop\n"), io.Discard); err == nil {
		t.Error("stop was taken by the receiver")
	}
}

// TestBadOptions: invalid sizes and a port in use are errors.
func TestBadOptions(t *testing.T) {
	at := free(t)
	for _, o := range []SendOptions{{Heap: 0, Packet: 1472}, {Heap: 1, Packet: 10}, {Heap: 1, Packet: 70000},
		{Heap: 1 << 30, Packet: 1472}} {
		o.To = at
		if _, err := Connect(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	_, r := pairOf(t, SendOptions{Heap: 1, Packet: 1472}, ReceiveOptions{Buffer: 1 << 20, Packet: 1472})
	if _, err := Listen(ReceiveOptions{At: r.options.At, Buffer: 1 << 20, Packet: 1472}); err == nil ||
		!strings.Contains(err.Error(), "ss -ulnp") {
		t.Error(err)
	}
}
