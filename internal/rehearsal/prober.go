package rehearsal

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"

	"orrery/internal/host"
)

// A Prober is a node that pings others (ICMP echo).
type Prober struct {
	node   string
	socket net.PacketConn // in the node's network namespace
	token  uint32         // identifies its answers

	mutex sync.Mutex
	asked map[netip.Addr]*answered
	order []Target
}

// answered contains the result for one target.
type answered struct {
	first, last time.Time // or zero for never
	silences    []Outage
}

// NewProber returns a Prober for a node, by the node's network namespace.
func NewProber(space *os.File, node string, targets []Target) (*Prober, error) {
	w := &Prober{node: node, asked: map[netip.Addr]*answered{}}
	var token [4]byte
	_, _ = rand.Read(token[:]) // it never fails
	w.token = binary.BigEndian.Uint32(token[:])
	for _, t := range targets {
		if t.Node != node && w.asked[t.Address] == nil {
			w.asked[t.Address] = &answered{}
			w.order = append(w.order, t)
		}
	}
	err := host.InNetNS(space, func() (err error) {
		w.socket, err = net.ListenPacket("ip4:icmp", "0.0.0.0")
		return err
	})
	return w, err
}

// Run pings the targets until ctx ends.
func (w *Prober) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = w.socket.Close() })
	defer stop()
	go w.receive()
	tick := time.NewTicker(PingInterval)
	defer tick.Stop()
	for sequence := 0; ctx.Err() == nil; sequence++ {
		message := icmp.Message{Type: ipv4.ICMPTypeEcho,
			Body: &icmp.Echo{ID: int(w.token & 0xffff), Seq: sequence & 0xffff,
				Data: binary.BigEndian.AppendUint32(nil, w.token)}}
		packet, err := message.Marshal(nil)
		if err != nil {
			return
		}
		for _, t := range w.order {
			_, _ = w.socket.WriteTo(packet, &net.IPAddr{IP: t.Address.AsSlice()}) // an error counts as no answer
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// receive records the answers.
func (w *Prober) receive() {
	packet := make([]byte, 1500)
	for {
		n, from, err := w.socket.ReadFrom(packet)
		if err != nil {
			return
		}
		if address, ok := w.answers(packet[:n], from); ok {
			w.record(address, time.Now())
		}
	}
}

// answers reports whether a packet answers a ping of this prober, and returns its sender.
func (w *Prober) answers(packet []byte, from net.Addr) (netip.Addr, bool) {
	message, err := icmp.ParseMessage(1, packet) // 1 is ICMP of IPv4
	if err != nil || message.Type != ipv4.ICMPTypeEchoReply {
		return netip.Addr{}, false
	}
	echo, ok := message.Body.(*icmp.Echo)
	if !ok || len(echo.Data) != 4 || binary.BigEndian.Uint32(echo.Data) != w.token {
		return netip.Addr{}, false
	}
	ip, ok := from.(*net.IPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	address, ok := netip.AddrFromSlice(ip.IP)
	return address.Unmap(), ok
}

func (w *Prober) record(address netip.Addr, now time.Time) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	a := w.asked[address]
	if a == nil {
		return
	}
	if a.first.IsZero() {
		a.first = now
	} else if now.Sub(a.last) > OutageThreshold {
		a.silences = append(a.silences, Outage{a.last, now})
	}
	a.last = now
}

// Views returns what the node has seen so far of the targets that have ever answered.
func (w *Prober) Views() []View {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	now := time.Now()
	var all []View
	for _, t := range w.order {
		a := w.asked[t.Address]
		if a.first.IsZero() {
			continue
		}
		v := View{From: w.node, Of: t, First: a.first, Last: now, Outages: append([]Outage(nil), a.silences...)}
		if now.Sub(a.last) > OutageThreshold {
			v.Outages = append(v.Outages, Outage{a.last, now})
		}
		all = append(all, v)
	}
	return all
}
