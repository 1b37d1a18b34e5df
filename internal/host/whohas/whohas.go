// Package whohas asks on a wire which machines have an IPv4 address.
//
// It sends requests of ARP of its own and reads all answers. A machine whose neighbour table is used instead
// sees one holder of the address even if there are two. It is a package of its own because tests and benches of
// services ask in the same way.
package whohas

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// A Client is the place from which to ask.
type Client struct {
	Space   string     // file of its network namespace
	Link    string     // its link to the network
	Address netip.Addr // its own address there
}

// An Answer is one answer of a machine.
type Answer struct {
	At  time.Time
	MAC string
}

// maxAnswers limits the answers that are stored, because any machine may send them.
const maxAnswers = 1 << 16

// An Asker asks who has an address.
type Asker struct {
	socket  int
	index   int
	request []byte
	target  [4]byte
	mac     net.HardwareAddr

	mutex   sync.Mutex
	answers []Answer
}

// readTimeout is how long a read waits before it looks whether the asker has ended.
const readTimeout = 100 * time.Millisecond

// Open prepares to ask from a client for the machines with an address. Close must be called.
func Open(c Client, target netip.Addr) (*Asker, error) {
	if !c.Address.Is4() || !target.Is4() {
		return nil, errors.New("ARP is about IPv4 addresses")
	}
	space, err := os.Open(c.Space)
	if err != nil {
		return nil, err
	}
	defer space.Close()
	a := &Asker{socket: -1, target: target.As4()}
	if err := host.InNetNS(space, func() error { return a.open(c.Link) }); err != nil {
		a.Close()
		return nil, err
	}
	own := c.Address.As4()
	a.request = slices.Concat([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, a.mac, []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1},
		a.mac, own[:], make([]byte, 6), a.target[:])
	return a, nil
}

// open opens the socket in the network namespace of the current thread.
func (a *Asker) open(link string) error {
	l, err := net.InterfaceByName(link)
	if err != nil {
		return err
	}
	if len(l.HardwareAddr) != 6 {
		return errors.New("link " + link + " is no Ethernet")
	}
	a.index, a.mac = l.Index, l.HardwareAddr
	protocol := binary.NativeEndian.Uint16([]byte{8, 6})
	if a.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol)); err != nil {
		return err
	}
	wait := unix.NsecToTimeval(readTimeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(a.socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return err
	}
	return unix.Bind(a.socket, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: a.index})
}

// Close closes the socket, after Run has returned.
func (a *Asker) Close() {
	if a.socket >= 0 {
		_ = unix.Close(a.socket)
		a.socket = -1
	}
}

// Run asks at intervals until ctx ends.
func (a *Asker) Run(ctx context.Context, interval time.Duration) {
	var reading sync.WaitGroup
	reading.Go(func() { a.read(ctx) })
	defer reading.Wait()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		// an error, such as that the link is down, counts as no answer
		_ = unix.Sendto(a.socket, a.request, 0, &unix.SockaddrLinklayer{Ifindex: a.index, Halen: 6})
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// read records the answers.
func (a *Asker) read(ctx context.Context) {
	frame := make([]byte, 1500)
	for ctx.Err() == nil {
		n, _, err := unix.Recvfrom(a.socket, frame, 0)
		if err != nil {
			if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ENETDOWN) {
				return
			}
			continue
		}
		if mac, ok := a.senderOf(frame[:n]); ok {
			a.mutex.Lock()
			if len(a.answers) < maxAnswers {
				a.answers = append(a.answers, Answer{time.Now(), mac})
			}
			a.mutex.Unlock()
		}
	}
}

// senderOf returns the sender of a frame that says to have the address.
func (a *Asker) senderOf(frame []byte) (mac string, ok bool) {
	if len(frame) < 42 || binary.BigEndian.Uint16(frame[12:]) != unix.ETH_P_ARP ||
		binary.BigEndian.Uint16(frame[20:]) != 2 || !slices.Equal(frame[28:32], a.target[:]) {
		return "", false
	}
	return net.HardwareAddr(frame[22:28]).String(), true
}

// Answers returns the answers so far, in order.
func (a *Asker) Answers() []Answer {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.answers)
}

// Since returns the machines that have answered since a time, sorted.
func (a *Asker) Since(from time.Time) (macs []string) {
	for _, answer := range a.Answers() {
		if !answer.At.Before(from) && !slices.Contains(macs, answer.MAC) {
			macs = append(macs, answer.MAC)
		}
	}
	slices.Sort(macs)
	return macs
}

// Ask asks for some time, and returns the machines that have answered, sorted.
func Ask(ctx context.Context, c Client, target netip.Addr, wait time.Duration) ([]string, error) {
	a, err := Open(c, target)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	ctx, end := context.WithTimeout(ctx, wait)
	defer end()
	a.Run(ctx, 50*time.Millisecond)
	return a.Since(time.Time{}), nil
}
