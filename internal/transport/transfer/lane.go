// Package transfer connects two hosts for one transfer. No other host can use the connection, and
// nothing of it remains.
//
// Each host calls Listen and gets an Endpoint with a key that is used once. Its EndpointInfo has what
// the other host must know about it. The control host passes this over its connections to both hosts.
// The sending host calls Accept with the EndpointInfo of the receiver. The receiving host calls Dial
// with that of the sender. Each end accepts only the holder of the key in the EndpointInfo (TLS 1.3,
// both certificates pinned). Where the hosts cannot reach each other, the receiver calls AcceptRelayed
// instead. The control host then connects to the loopback address of each end, which only the host
// itself can reach. Splice copies the bytes between the two connections. The control host cannot read
// them.
//
// In package apply, a transferRun does the control host's part. The code of a particular transfer only
// sends or receives at each end.
package transfer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Timeout is how long an end waits for its peer. StallTimeout is how long a transfer may make no
// progress.
const (
	Timeout      = 15 * time.Second
	StallTimeout = 30 * time.Second
)

// maxHandshakes is the maximum number of connections that a listening end handshakes with before it
// gives up.
const maxHandshakes = 64

// An EndpointInfo is what one end tells its peer, by way of the control host.
type EndpointInfo struct {
	Fingerprint  string         `json:"print"` // SHA-256 of the certificate
	PublicAddr   netip.AddrPort `json:"at"`    // where it listens for other hosts, or zero if they cannot reach it
	LoopbackAddr netip.AddrPort `json:"back"`  // where it listens on the loopback interface
}

// Check returns an error for data that a host may have forged: its addresses must be on that
// host. Own is the address of the host, or the zero value if unknown.
func (c EndpointInfo) Check(own netip.Addr) error {
	switch digest, err := hex.DecodeString(c.Fingerprint); {
	case err != nil || len(digest) != sha256.Size:
		return errors.New("its key fingerprint is missing")
	case !c.LoopbackAddr.Addr().IsLoopback() || c.LoopbackAddr.Port() == 0:
		return fmt.Errorf("it reports %s, which is not a loopback address", c.LoopbackAddr)
	case c.PublicAddr != netip.AddrPort{} && (c.PublicAddr.Addr() != own || c.PublicAddr.Port() == 0):
		return fmt.Errorf("it reports %s, but its address is %s", c.PublicAddr, own)
	}
	return nil
}

// An Endpoint is one host's end of a connection. Each has its own key.
type Endpoint struct {
	key       tls.Certificate
	info      EndpointInfo
	listeners []net.Listener
	close     sync.Once
}

// Listen creates an end. It listens on the loopback interface, and on the address at of this host, so
// that other hosts can connect. If this host does not have that address, or at is the zero value,
// other hosts cannot connect.
func Listen(at netip.Addr) (*Endpoint, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	e := &Endpoint{key: key, info: EndpointInfo{Fingerprint: fingerprintOf(key.Certificate[0])}}
	back, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e.listeners, e.info.LoopbackAddr = []net.Listener{back}, addrPortOf(back)
	if at.IsValid() {
		// this fails if the host is behind a NAT
		if others, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String()); err == nil {
			e.listeners, e.info.PublicAddr = append(e.listeners, others), addrPortOf(others)
		}
	}
	return e, nil
}

// LocalAddrFor returns the address from which this host would connect to another, or the zero value if
// there is no route.
func LocalAddrFor(other netip.Addr) netip.Addr {
	if !other.IsValid() {
		return other
	}
	c, err := net.Dial("udp", netip.AddrPortFrom(other, 9).String()) // UDP: this sends nothing
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

// newKey creates a key with a certificate that contains nothing but the key.
func newKey() (tls.Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	says := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-24 * time.Hour),
		NotAfter: now.Add(24 * time.Hour)}
	text, err := x509.CreateCertificate(rand.Reader, says, says, private.Public(), private)
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: private}, err
}

func fingerprintOf(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}

func addrPortOf(l net.Listener) netip.AddrPort {
	at := l.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// Info returns what the peer must know.
func (e *Endpoint) Info() EndpointInfo { return e.info }

// Close closes the listeners. A connection that has been made stays open.
func (e *Endpoint) Close() {
	e.close.Do(func() {
		for _, l := range e.listeners {
			_ = l.Close()
		}
	})
}

// errWrongPeer is the error for a peer that does not hold the expected key.
var errWrongPeer = errors.New("the peer has another key")

// config returns a TLS configuration that accepts only the holder of the key in an EndpointInfo. The
// certificates contain nothing but a key, so nothing else is verified.
func (e *Endpoint) config(peer EndpointInfo) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{e.key}, SessionTicketsDisabled: true,
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 ||
				subtle.ConstantTimeCompare([]byte(fingerprintOf(c.PeerCertificates[0].Raw)), []byte(peer.Fingerprint)) != 1 {
				return errWrongPeer
			}
			return nil
		},
	}
}

// Accept waits for the peer with the pinned key and then closes the listeners. The sending host
// calls it.
func (e *Endpoint) Accept(ctx context.Context, peer EndpointInfo) (net.Conn, error) {
	config := e.config(peer)
	return e.await(ctx, func(c net.Conn) *tls.Conn { return tls.Server(c, config) })
}

// AcceptRelayed waits until the control host has connected this host with the peer. The receiving host
// calls it.
func (e *Endpoint) AcceptRelayed(ctx context.Context, peer EndpointInfo) (net.Conn, error) {
	config := e.config(peer)
	return e.await(ctx, func(c net.Conn) *tls.Conn { return tls.Client(c, config) })
}

// Dial connects to the address where the peer listens. The receiving host calls it.
func (e *Endpoint) Dial(ctx context.Context, peer EndpointInfo) (net.Conn, error) {
	if (peer.PublicAddr == netip.AddrPort{}) {
		return nil, errors.New("it reports no address at which it listens")
	}
	const probeTimeout = 3 * time.Second // a firewall that drops packets sends no answer
	dialing, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(dialing, "tcp", peer.PublicAddr.String())
	if err != nil {
		return nil, err
	}
	return handshake(ctx, tls.Client(c, e.config(peer)))
}

// await listens until the peer connects and has proved its key.
func (e *Endpoint) await(ctx context.Context, wrap func(net.Conn) *tls.Conn) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	came, last := make(chan net.Conn), make(chan error, 1)
	places := make(chan struct{}, maxHandshakes)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	defer e.Close()
	for _, l := range e.listeners {
		all.Go(func() {
			for {
				raw, err := l.Accept()
				if err != nil {
					return
				}
				select {
				case places <- struct{}{}: // never received from again: the capacity limits the number of handshakes
				default:
					_ = raw.Close()
					return
				}
				all.Go(func() {
					c, err := handshake(ctx, wrap(raw))
					if err != nil {
						select {
						case last <- err:
						default:
						}
						return
					}
					select {
					case came <- c:
					case <-ctx.Done():
						_ = c.Close()
					}
				})
			}
		})
	}
	select {
	case c := <-came:
		return c, nil
	case <-ctx.Done():
	}
	select {
	case err := <-last:
		return nil, fmt.Errorf("the other host has not connected: %w", err)
	default:
		return nil, fmt.Errorf("the other host has not connected: %w", context.Cause(ctx))
	}
}

// handshake runs the TLS handshake, in which each end verifies the other.
func handshake(ctx context.Context, c *tls.Conn) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout/3)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return &stallConn{Conn: c}, nil
}

// stallConn is a connection that fails after StallTimeout without progress.
type stallConn struct{ *tls.Conn }

func (p *stallConn) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(StallTimeout)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

func (p *stallConn) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(StallTimeout)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// WithoutDeadline lets a connection pause for any time, for example while one end reads a large
// disk before it sends more. If the other host or the route to it is gone, the kernel ends the
// connection after StallTimeout.
func WithoutDeadline(c net.Conn) net.Conn {
	p, ok := c.(*stallConn)
	if !ok {
		return c
	}
	_ = p.SetDeadline(time.Time{}) // otherwise an earlier deadline still applies
	if below, ok := p.NetConn().(*net.TCPConn); ok {
		if raw, err := below.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(StallTimeout.Milliseconds()))
			})
		}
	}
	return p.Conn
}

// ErrConnectionLost is the error for a transfer that ended with its connection, because of the other host or
// the network.
var ErrConnectionLost = errors.New("the connection between the hosts was lost")

// AsConnectionLost returns ErrConnectionLost for an error that means so, and other errors unchanged.
func AsConnectionLost(err error) error {
	for _, end := range []error{ErrConnectionLost, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, unix.ECONNRESET, unix.EPIPE,
		unix.ETIMEDOUT} {
		if errors.Is(err, end) {
			return ErrConnectionLost
		}
	}
	return err
}
