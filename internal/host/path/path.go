// Package path measures the largest packets that arrive between two hosts, by pings.
//
// The pings (ICMP echo) must not be fragmented. No listener is needed, and nothing remains
// afterwards. The remote kernel answers. It is trusted only for the fact that a packet of that size
// came back.
package path

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Route is a path from an address of this host to one of another, for packets of a size.
type Route struct {
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
	Size int        `json:"size"` // bytes, including the IP header
}

// Least is the size of a packet that every link transports (RFC 791). Most is the maximum size of a
// packet.
const (
	MinBytes = 68
	MaxBytes = 65535
)

// How many routes are tried at once, how often a packet is sent before it counts as lost, and how
// long the first answer may take. Later answers may take four times as long as the last one, but at
// least hasty.
const (
	maxConcurrent = 32
	maxAttempts   = 3
	firstTimeout  = time.Second
	minTimeout    = 100 * time.Millisecond
)

// Probe returns, for each way, the size of the largest packet that came back, or 0 if none did.
func Probe(ctx context.Context, ways []Route) []int {
	best := make([]int, len(ways))
	slots := make(chan struct{}, maxConcurrent)
	var all sync.WaitGroup
	for i, w := range ways {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			best[i] = probe(ctx, w)
		})
	}
	all.Wait()
	return best
}

func probe(ctx context.Context, w Route) int {
	if !w.From.IsValid() || !w.To.IsValid() || w.From.Is4() != w.To.Is4() || w.Size < MinBytes || w.Size > MaxBytes {
		return 0
	}
	p, err := newProber(w)
	if err != nil {
		return 0
	}
	defer p.Close() //nolint:errcheck // nothing was written
	defer context.AfterFunc(ctx, func() { _ = p.SetDeadline(time.Unix(1, 0)) })()
	answers := func(size int) bool {
		for range maxAttempts {
			if ctx.Err() == nil && p.answered(size) {
				return true
			}
		}
		return false
	}
	if !answers(MinBytes) { // this also measures how long to wait
		return 0
	}
	if answers(w.Size) {
		return w.Size
	}
	fits, not := MinBytes, w.Size
	for fits+1 < not {
		if half := (fits + not) / 2; answers(half) {
			fits = half
		} else {
			not = half
		}
	}
	return fits
}

// A prober is a socket for pings to one address.
type prober struct {
	*net.IPConn
	to       *net.IPAddr
	header   int // bytes of the IP header
	ask, say byte
	token    [8]byte
	sequence uint16
	wait     time.Duration
}

func newProber(w Route) (*prober, error) {
	p := &prober{to: &net.IPAddr{IP: w.To.AsSlice()}, header: 20, ask: 8, say: 0, wait: firstTimeout}
	network, level, option, whole := "ip4:icmp", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE
	if w.To.Is6() {
		p.header, p.ask, p.say = 40, 128, 129
		network, level, option, whole = "ip6:ipv6-icmp", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE
	}
	_, _ = rand.Read(p.token[:]) // it never fails
	conn, err := net.ListenIP(network, &net.IPAddr{IP: w.From.AsSlice()})
	if err != nil {
		return nil, err
	}
	p.IPConn = conn
	raw, err := conn.SyscallConn()
	if err == nil {
		var refused error
		err = raw.Control(func(fd uintptr) {
			refused = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), level, option, whole))
		})
		err = errors.Join(err, refused)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return p, nil
}

// answered reports whether a packet of a size comes back in time.
func (p *prober) answered(size int) bool {
	p.sequence++
	out := make([]byte, size-p.header)
	out[0] = p.ask
	binary.BigEndian.PutUint16(out[4:], binary.BigEndian.Uint16(p.token[:]))
	binary.BigEndian.PutUint16(out[6:], p.sequence)
	copy(out[8:], p.token[:])
	if p.ask == 8 { // for IPv6, the kernel computes it
		binary.BigEndian.PutUint16(out[2:], checksum(out))
	}
	sent := time.Now()
	if p.SetDeadline(sent.Add(p.wait)) != nil {
		return false
	}
	if _, err := p.WriteToIP(out, p.to); err != nil {
		return false // the packet is too large for the interface, or there is no route
	}
	in := make([]byte, size)
	for {
		n, from, err := p.ReadFromIP(in)
		if err != nil {
			if errors.Is(err, syscall.EMSGSIZE) || errors.Is(err, syscall.ECONNREFUSED) {
				continue
			}
			return false
		}
		if n == len(out) && from.IP.Equal(p.to.IP) && in[0] == p.say && in[1] == 0 && string(in[4:n]) == string(out[4:]) {
			p.wait = min(firstTimeout, max(minTimeout, 4*time.Since(sent)))
			return true
		}
	}
}

// checksum returns the ICMP checksum (RFC 1071).
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
