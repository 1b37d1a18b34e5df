package spead

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// SendOptions are the options of a Sender.
type SendOptions struct {
	To      netip.AddrPort // address of the first stream; each other stream uses the next port
	Sockets int            // number of sockets, each with a thread and a stream
	Heap    int            // data bytes of a heap
	// maximum packet size in bytes, including the SPEAD header; rounded down to a multiple of 8
	Packet int
	Buffer int // of each socket, in bytes
	// pass many packets to the kernel at once, which segments them (UDP_SEGMENT), if possible
	GSO bool
}

// Sent holds the counts of a session.
type Sent struct {
	Heaps   uint64  `json:"heaps"`
	Packets uint64  `json:"packets"`
	Bytes   uint64  `json:"bytes"` // of packets, including their SPEAD headers
	Seconds float64 `json:"seconds"`
	Asked   float64 `json:"asked"`          // requested bit/s, or 0 for full speed
	Rate    float64 `json:"rate"`           // achieved rate of packets in bit/s
	Full    uint64  `json:"full"`           // how often the kernel had no space (ENOBUFS)
	Burst   int     `json:"burst"`          // bytes that each stream may send without a pause
	GSO     bool    `json:"gso"`            // packets were passed to the kernel in groups
	Late    float64 `json:"late,omitempty"` // maximum delay behind the schedule in seconds
}

// A Sender has connected sockets.
type Sender struct {
	options SendOptions
	streams []*stream
}

// A stream is one socket and its heaps.
type stream struct {
	fd          int
	next, step  uint64 // IDs of heaps
	gso         bool
	first, rest *frame
	described   bool // the descriptors were sent
	memory      vector
}

// maxSegments is how many packets the kernel accepts in one message (UDP_MAX_SEGMENTS; 128 since Linux
// 6.9).
const maxSegments = 64

// maxPacketBytes is the size that the kernel accepts in one message: 64 KiB minus the headers of
// IPv6 and UDP.
const maxPacketBytes = 65535 - 48

// Check returns an error if a size is invalid.
func (o SendOptions) Check() error {
	switch {
	case o.Packet < 128 || o.Packet > maxPacketBytes:
		return problem.New(problem.Usage, "the packet size %d is invalid", o.Packet).
			Try("use 128 to %d bytes, such as 1472", maxPacketBytes)
	case o.Heap < 1 || o.Heap > maxHeapBytes-4096:
		return problem.New(problem.Usage, "the heap size %d is invalid", o.Heap).Try("use 1 byte to 255 MiB")
	}
	return nil
}

// Connect creates and connects the sockets.
func Connect(o SendOptions) (*Sender, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.Packet &^= 7
	o.Sockets = max(o.Sockets, 1)
	s := &Sender{options: o}
	for i := range o.Sockets {
		to := netip.AddrPortFrom(o.To.Addr(), o.To.Port()+uint16(i))
		one, err := newStream(to, o)
		if err != nil {
			s.Close()
			return nil, problem.New(problem.Failed, "cannot send SPEAD to UDP %v", to).Because(err).
				Try("ip route get %v shows the route", to.Addr())
		}
		one.next, one.step = uint64(i)+1, uint64(o.Sockets)
		s.streams = append(s.streams, one)
	}
	return s, nil
}

func newStream(to netip.AddrPort, o SendOptions) (*stream, error) {
	fd, err := open(to.Addr())
	if err != nil {
		return nil, err
	}
	if _, err = setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, o.Buffer); err == nil {
		err = unix.Connect(fd, sockaddr(to))
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	s := &stream{fd: fd, rest: newFrame(o.Heap, o.Packet, nil), first: newFrame(o.Heap, o.Packet, descriptors(o.Heap))}
	s.gso = o.GSO && unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT, o.Packet) == nil // since Linux 4.18
	return s, nil
}

// descriptors returns the descriptors of the items, which are part of the first heap.
func descriptors(heap int) []Item {
	return []Item{
		{ID: idDescriptor, Data: Descriptor{ID: idTime, Name: "timestamp", Description: "Number of the heap"}.encode()},
		{ID: idDescriptor, Data: Descriptor{ID: idData, Name: "data", Description: "A pattern of bytes",
			Type: fmt.Sprintf("{'shape': (%d,), 'fortran_order': False, 'descr': '|u1'}", heap)}.encode()},
	}
}

// Close closes the sockets.
func (s *Sender) Close() {
	for _, one := range s.streams {
		_ = unix.Close(one.fd)
	}
}

// HeapBytes returns the size of all packets of a heap, including their SPEAD headers.
func (s *Sender) HeapBytes() int { return s.streams[0].rest.heap() }

// HeapsFor returns the number of heaps for a duration at a rate in bit/s, at least one per stream.
func (s *Sender) HeapsFor(rate float64, time time.Duration) int {
	return max(len(s.streams), int(math.Round(rate/8*time.Seconds()/float64(s.HeapBytes()))))
}

// Send sends the given number of heaps in total at a rate in bit/s of packets, including their
// SPEAD headers. A rate of 0 means full speed. It starts no heap after the longest time, and stops
// at once if ctx ends.
func (s *Sender) Send(ctx context.Context, heaps int, longest time.Duration, rate float64) (Sent, error) {
	group, ctx := errgroup.WithContext(ctx)
	each := make([]Sent, len(s.streams))
	began := time.Now().Add(100 * time.Microsecond) // all threads are running by then
	for i, one := range s.streams {
		share := (heaps + len(s.streams) - 1 - i) / len(s.streams)
		group.Go(func() (err error) {
			each[i], err = one.send(ctx, share, s.options.Packet, newPace(rate/float64(len(s.streams)), began),
				began.Add(longest))
			return err
		})
	}
	err := group.Wait()
	all := Sent{Asked: rate}
	for _, one := range each {
		all.Heaps += one.Heaps
		all.Packets += one.Packets
		all.Bytes += one.Bytes
		all.Full += one.Full
		all.Seconds = max(all.Seconds, one.Seconds)
		all.Late = max(all.Late, one.Late)
		all.Burst, all.GSO = one.Burst, one.GSO
	}
	if all.Seconds > 0 {
		all.Rate = float64(all.Bytes) * 8 / all.Seconds
	}
	return all, err
}

// EndAttempts is how often to send the heap that ends a stream if the receiver has no other way to learn
// of the end: each may be lost.
const EndAttempts = 3

// End sends the heap that ends each stream, the given number of times. Then the streams can start
// again.
func (s *Sender) End(attempts int) {
	for try := range attempts {
		time.Sleep(time.Duration(try) * 3 * time.Millisecond)
		for _, one := range s.streams {
			packet := encode(one.next, []Item{{ID: idControl, Immediate: true, Value: stopControl}}, 256)[0]
			_, _ = unix.Write(one.fd, packet) // ignore the error: the receiver may be gone
			one.described = false
		}
	}
}

func (s *stream) send(ctx context.Context, heaps, full int, pace *pace, until time.Time) (Sent, error) {
	runtime.LockOSThread() // never unlocked: the thread with its timer slack must end with the goroutine
	setTimerSlack()
	now := sleepUntil(pace.began)
	var sent Sent
	var err error
	for heaps > 0 && err == nil && ctx.Err() == nil && now.Before(until) {
		f := s.rest
		if !s.described {
			f, s.described = s.first, true
		}
		some := min(heaps, f.heaps)
		f.number(s.next, s.step)
		s.next += uint64(some) * s.step
		heaps -= some
		for _, p := range f.pieces(some, full) {
			now = sleepUntil(pace.due())
			sent.Late = max(sent.Late, now.Sub(pace.end()).Seconds())
			if err = s.piece(f, p, &sent); err != nil {
				break
			}
			pace.recordSent(p.end-p.begin, now)
			sent.Heaps += uint64(p.heaps)
			if ctx.Err() != nil || p.heaps > 0 && now.After(until) {
				break
			}
		}
	}
	sent.Seconds = sleepUntil(pace.end()).Sub(pace.began).Seconds()
	sent.Burst, sent.GSO = pace.burst(min(coalescedBytes/full, maxSegments)*full), s.gso
	if err != nil {
		err = problem.New(problem.Failed, "sending SPEAD failed").Because(err)
	}
	return sent, err
}

// piece sends a piece of a frame.
func (s *stream) piece(f *frame, p piece, sent *Sent) error {
	for done := 0; done < len(p.packets); {
		messages := s.memory.fill(f.memory[p.begin:p.end], p.packets[done:], s.gso)
		n, err := sendAll(s.fd, messages)
		for range n {
			k := 1
			if s.gso {
				k = len(p.packets)
			}
			for _, size := range p.packets[done : done+k] {
				p.begin += size
				sent.Bytes += uint64(size)
			}
			sent.Packets += uint64(k)
			done += k
		}
		switch {
		case err == nil:
		case errors.Is(err, unix.ENOBUFS):
			sent.Full++
			time.Sleep(10 * time.Microsecond)
		case errors.Is(err, unix.ECONNREFUSED): // caused by an earlier packet: this one was not sent
		case s.gso && (errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EMSGSIZE)):
			// The interface does not support it, or its MTU is smaller, so that IP would fragment
			// the packets.
			s.gso = false
			err = unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_SEGMENT, 0)
			if err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

// A vector is memory for the messages of a piece.
type vector struct {
	messages []message
	parts    []unix.Iovec
}

// fill creates the messages of contiguous packets: one for all if the kernel segments it.
func (v *vector) fill(memory []byte, packets []int, together bool) []message {
	if v.messages == nil {
		v.messages, v.parts = make([]message, maxSegments), make([]unix.Iovec, maxSegments)
	}
	if together {
		packets = []int{len(memory)}
	}
	for i, size := range packets {
		v.parts[i].Base = &memory[0]
		v.parts[i].SetLen(size)
		v.messages[i].set(&v.parts[i])
		memory = memory[size:]
	}
	return v.messages[:len(packets)]
}
