// Package transfer connects two hosts for one transfer: no other host can use the connection, and
// nothing of it remains.
//
// Each host calls Open and gets an End with a key that is used once. What the other one must know
// of it is its Card, which whoever steers both hands over by the ways that he has to them. The host
// that gives calls Accept with the card of the other; that one calls Dial with the giver's. Either
// end takes nobody but the holder of the key on the card (TLS 1.3, both certificates pinned). Where
// the hosts do not reach one another, the one that takes calls Relayed instead, and whoever steers
// lets Join carry the bytes between the two places called Back on their cards, each of which is
// only for its own host; he cannot read them.
//
// In package apply, Passage does the steering: who writes a transfer needs no more than what it
// does at either end.
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

// Timeout is how long an end waits for the other, and Stall how long it lets a transfer stand still.
const (
	Timeout = 15 * time.Second
	Stall   = 30 * time.Second
)

// handshakes is how many callers a listening end hears that turn out to be somebody else, before it gives up.
const handshakes = 64

// A Card is what one end tells the other, by way of whoever steers both.
type Card struct {
	Print string         `json:"print"` // SHA-256 of the certificate
	At    netip.AddrPort `json:"at"`    // where it listens for others; the zero one: nowhere
	Back  netip.AddrPort `json:"back"`  // where it listens for its own host
}

// Check refuses a card that a host may have made up: it must not lead anybody elsewhere than to
// that host. Own is the address of the host, if that is known.
func (c Card) Check(own netip.Addr) error {
	switch digest, err := hex.DecodeString(c.Print); {
	case err != nil || len(digest) != sha256.Size:
		return errors.New("it has no fingerprint of a key")
	case !c.Back.Addr().IsLoopback() || c.Back.Port() == 0:
		return fmt.Errorf("it says %s, which is no place on the host itself", c.Back)
	case c.At != netip.AddrPort{} && (c.At.Addr() != own || c.At.Port() == 0):
		return fmt.Errorf("it says %s, and its address is %s", c.At, own)
	}
	return nil
}

// An End is that of one host. It has a key that no other end has.
type End struct {
	key   tls.Certificate
	card  Card
	ears  []net.Listener
	close sync.Once
}

// Open makes an end. It listens on an address of this host, where others reach it, and where only
// this host does. If there is no such address here, or it is the zero one, others do not reach it.
func Open(at netip.Addr) (*End, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	e := &End{key: key, card: Card{Print: printOf(key.Certificate[0])}}
	back, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e.ears, e.card.Back = []net.Listener{back}, placeOf(back)
	if at.IsValid() {
		if others, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String()); err == nil { // else it is behind a NAT
			e.ears, e.card.At = append(e.ears, others), placeOf(others)
		}
	}
	return e, nil
}

// Toward returns the address from which this host would call another one; the zero one: it would not.
func Toward(other netip.Addr) netip.Addr {
	if !other.IsValid() {
		return other
	}
	c, err := net.Dial("udp", netip.AddrPortFrom(other, 9).String()) // nothing is sent
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

// newKey makes a key with a certificate that says nothing of anybody.
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

func printOf(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}

func placeOf(l net.Listener) netip.AddrPort {
	at := l.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// Card returns what the other end must know.
func (e *End) Card() Card { return e.card }

// Close ends the listening. A connection that was made stays.
func (e *End) Close() {
	e.close.Do(func() {
		for _, l := range e.ears {
			_ = l.Close()
		}
	})
}

// errStranger is of whoever is not the holder of the key that was agreed on.
var errStranger = errors.New("it is somebody else")

// config lets only the holder of the key on a card in. Certificates say nothing but their key, so
// nothing else of them is asked.
func (e *End) config(peer Card) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{e.key}, SessionTicketsDisabled: true,
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 ||
				subtle.ConstantTimeCompare([]byte(printOf(c.PeerCertificates[0].Raw)), []byte(peer.Print)) != 1 {
				return errStranger
			}
			return nil
		},
	}
}

// Accept waits for the other end and takes nobody else, then listens no more. This is for the host that gives.
func (e *End) Accept(ctx context.Context, peer Card) (net.Conn, error) {
	config := e.config(peer)
	return e.await(ctx, func(c net.Conn) *tls.Conn { return tls.Server(c, config) })
}

// Relayed waits for whoever steers to connect this host with the other end. This is for the host that takes.
func (e *End) Relayed(ctx context.Context, peer Card) (net.Conn, error) {
	config := e.config(peer)
	return e.await(ctx, func(c net.Conn) *tls.Conn { return tls.Client(c, config) })
}

// Dial connects to where the other end listens. This is for the host that takes.
func (e *End) Dial(ctx context.Context, peer Card) (net.Conn, error) {
	if (peer.At == netip.AddrPort{}) {
		return nil, errors.New("it says no address at which it listens")
	}
	const probeTimeout = 3 * time.Second // a wall that drops what is sent says nothing
	dialing, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(dialing, "tcp", peer.At.String())
	if err != nil {
		return nil, err
	}
	return shake(ctx, tls.Client(c, e.config(peer)))
}

// await listens until the other end comes.
func (e *End) await(ctx context.Context, wrap func(net.Conn) *tls.Conn) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	came, last := make(chan net.Conn), make(chan error, 1)
	places := make(chan struct{}, handshakes)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	defer e.Close()
	for _, l := range e.ears {
		all.Go(func() {
			for {
				raw, err := l.Accept()
				if err != nil {
					return
				}
				select {
				case places <- struct{}{}: // and is never taken out: so many strangers are enough
				default:
					_ = raw.Close()
					return
				}
				all.Go(func() {
					c, err := shake(ctx, wrap(raw))
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
		return nil, fmt.Errorf("the other end has not come: %w", err)
	default:
		return nil, fmt.Errorf("the other end has not come: %w", context.Cause(ctx))
	}
}

// shake proves either end to the other.
func shake(ctx context.Context, c *tls.Conn) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout/3)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return &patient{Conn: c}, nil
}

// patient is a connection that ends when it has stood still for long.
type patient struct{ *tls.Conn }

func (p *patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(Stall)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

func (p *patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(Stall)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// Unhurried lets a connection stand still as long as its ends like, as one that reads a large disk
// before it says more. If the other host is gone, or the way to it, the kernel ends it.
func Unhurried(c net.Conn) net.Conn {
	p, ok := c.(*patient)
	if !ok {
		return c
	}
	_ = p.SetDeadline(time.Time{}) // else it ends earlier
	if below, ok := p.NetConn().(*net.TCPConn); ok {
		if raw, err := below.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(Stall.Milliseconds()))
			})
		}
	}
	return p.Conn
}

// ErrCut is of a transfer that has ended as the connection has: the other host has ended it, or the way there.
var ErrCut = errors.New("the connection between the hosts was cut")

// Cut tells such an error as ErrCut, and others as they are.
func Cut(err error) error {
	for _, end := range []error{ErrCut, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, unix.ECONNRESET, unix.EPIPE,
		unix.ETIMEDOUT} {
		if errors.Is(err, end) {
			return ErrCut
		}
	}
	return err
}
