package prove

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/shape"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

const (
	// etherType is the first protocol for local experiments (IEEE 802, 10.9). No system answers it.
	etherType = 0x88b5
	// excess is how much a paced load offers, as a multiple of the limit.
	excess     = 2
	headerSize = 14
	leastFrame = 60
)

// trafficLoader returns the loader of one direction of a node's interface. Rate is the limit in
// bit/s that the load exceeds.
func trafficLoader(t *Target, l Limit, seconds float64) (*loader, error) {
	nic, _ := t.nicOn(l.nic.Network)
	passage, err := shape.PassageOf(nic.HostIfName)
	if err != nil {
		return nil, problem.New(problem.Failed, "the host's end %s of its link cannot be read", nic.HostIfName).Because(err)
	}
	burst := time.Duration(float64(l.nic.Traffic.BurstBytes()) * 8 / l.Value / (excess - 1) * float64(time.Second))
	const maxBurst = 20 * time.Second
	if burst > maxBurst {
		return nil, problem.New(problem.Unable, "its burst lasts %v", burst.Round(time.Second))
	}
	size := unitsOf(l.Value/8, seconds, leastFrame, nic.MTU+headerSize)
	return &loader{
		start: func() (load, error) { return startSender(t, l.Kind, nic, size, l.Value*excess) },
		count: func() (float64, error) {
			to, from, err := passage.Count()
			if l.Kind == FromNode {
				to = from
			}
			return float64(to) * 8, err
		},
		settle: 300*time.Millisecond + burst,
	}, nil
}

// A sender sends frames at a rate that is above the limit.
type sender struct {
	fd     int
	bits   atomic.Int64 // offered
	failed atomic.Pointer[error]
	quit   chan struct{}
	done   chan struct{}
}

// startSender starts a sender of frames of some size, to a node or from it.
func startSender(t *Target, kind string, nic spec.NIC, size int, bitsPerSecond float64) (load, error) {
	mac, err := net.ParseMAC(nic.MAC)
	if err != nil {
		return nil, err
	}
	link, err := netlink.LinkByName(nic.HostIfName)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, size)
	copy(frame, mac)
	copy(frame[6:], mac)
	binary.BigEndian.PutUint16(frame[12:], etherType)
	s := &sender{fd: -1, quit: make(chan struct{}), done: make(chan struct{})}
	if kind == ToNode {
		copy(frame[6:], link.Attrs().HardwareAddr)
		s.fd, err = openSender(link.Attrs().Index)
	} else {
		s.fd, err = openInNode(t.NetSpace, link.Attrs().ParentIndex)
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "no frames can be sent").At(nic.HostIfName).Because(err)
	}
	host.GoOnLockedThread(func() { s.run(frame, bitsPerSecond) })
	return s, nil
}

// openInNode opens a socket that sends out of an interface of a network namespace.
func openInNode(space string, index int) (fd int, err error) {
	file, err := os.Open(space)
	if err != nil {
		return -1, err
	}
	defer file.Close()
	err = host.InNetNS(file, func() (err error) {
		fd, err = openSender(index)
		return err
	})
	return fd, err
}

// openSender opens a socket that only sends, out of an interface. Its buffer is large, so that the
// queue of the limit never runs dry between two wake-ups of the sender.
func openSender(index int) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	const buffer = 8 << 20
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index}); err != nil {
		return -1, errors.Join(os.NewSyscallError("bind", err), unix.Close(fd))
	}
	return fd, nil
}

// run sends frames until the sender is ended. Frames that the kernel has no room for count as
// offered.
func (s *sender) run(frame []byte, bitsPerSecond float64) {
	defer close(s.done)
	const (
		tick    = time.Millisecond
		backlog = 0.1 // seconds that a late sender makes up for
	)
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	perSecond := bitsPerSecond / 8 / float64(len(frame)) // frames
	last, due := time.Now(), 0.0
	for {
		select {
		case <-s.quit:
			return
		case <-ticks.C:
		}
		now := time.Now()
		due = min(due+now.Sub(last).Seconds()*perSecond, max(perSecond*backlog, 1))
		last = now
		for ; due >= 1; due-- {
			_, err := unix.Write(s.fd, frame)
			switch {
			case err == nil, errors.Is(err, unix.ENOBUFS):
				s.bits.Add(int64(len(frame)) * 8)
				continue
			case errors.Is(err, unix.EAGAIN):
				s.bits.Add(int64(due) * int64(len(frame)) * 8)
				due -= float64(int(due))
			case !errors.Is(err, unix.EINTR):
				err = os.NewSyscallError("send", err)
				s.failed.Store(&err)
				return
			}
			break
		}
	}
}

func (s *sender) offered() float64 { return float64(s.bits.Load()) }

func (s *sender) err() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *sender) end() error {
	close(s.quit)
	<-s.done
	return unix.Close(s.fd)
}
