package spead

import (
	"context"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// ReceiveOptions are the options of a Receiver.
type ReceiveOptions struct {
	At      netip.AddrPort // address of the first socket; each other socket uses the next port
	Sockets int            // number of sockets, each with a thread and a stream
	Buffer  int            // of each socket, in bytes
	Packet  int            // maximum packet size in bytes; longer packets are truncated and count as damaged
	Heap    int            // size of heaps in bytes for which memory is allocated in advance
	Whole   func(*Heap)    // called for each complete heap, one socket after another; nil to only count heaps
}

// Received holds the counts of a session.
type Received struct {
	Heaps   uint64 `json:"heaps"`    // complete heaps
	Partial uint64 `json:"partial"`  // incomplete heaps
	Bytes   uint64 `json:"bytes"`    // payload bytes of complete heaps
	Packets uint64 `json:"packets"`  // packets that the kernel delivered
	InWhole uint64 `json:"in_whole"` // packets in complete heaps
	Data    uint64 `json:"data"`     // bytes of all delivered packets, including their SPEAD headers
	Damaged uint64 `json:"damaged"`  // packets that were not SPEAD-64
	Twice   uint64 `json:"twice"`    // duplicate packets
	// how often a socket's buffer was full; coalesced packets count as one
	Dropped uint64  `json:"dropped"`
	Calls   uint64  `json:"calls"`   // calls of recvmmsg that returned messages
	Stopped int     `json:"stopped"` // streams whose end was received
	Seconds float64 `json:"seconds"` // from the first packet to the last
	Buffer  int     `json:"buffer"`  // bytes that each socket obtained
	GRO     bool    `json:"gro"`     // the kernel coalesces packets
}

// A Receiver has bound sockets. The kernel queues packets for it as soon as it exists.
type Receiver struct {
	options ReceiveOptions
	ends    []*receiveSocket
}

// A receiveSocket is one socket and its heaps.
type receiveSocket struct {
	fd      int
	batch   *batch
	heaps   *assembly
	got     Received
	drops   uint64 // drops of the socket before the session
	first   time.Time
	latest  time.Time
	stopped bool
}

// readTimeout is how long a read waits for a packet before it checks whether to stop.
const readTimeout = 20 * time.Millisecond

// maxDrainTime limits how long packets are still received after the session should end, if there is
// no pause.
const maxDrainTime = time.Second

// Listen creates and binds the sockets.
func Listen(o ReceiveOptions) (*Receiver, error) {
	r := &Receiver{options: o}
	for i := range max(o.Sockets, 1) {
		at := netip.AddrPortFrom(o.At.Addr(), o.At.Port()+uint16(i))
		e, err := newReceiveSocket(at, o)
		if err != nil {
			r.Close()
			return nil, problem.New(problem.Failed, "cannot receive SPEAD on UDP %v", at).Because(err).
				Try("ss -ulnp shows which process uses the port")
		}
		r.ends = append(r.ends, e)
	}
	return r, nil
}

func newReceiveSocket(at netip.AddrPort, o ReceiveOptions) (*receiveSocket, error) {
	fd, err := open(at.Addr())
	if err != nil {
		return nil, err
	}
	e := &receiveSocket{fd: fd}
	e.got.Buffer, err = setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, o.Buffer)
	e.got.GRO = unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1) == nil // since Linux 5.0
	if err == nil {
		err = unix.Bind(fd, sockaddr(at))
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	e.batch = newBatch(e.got.GRO, o.Packet)
	e.heaps = newAssembly(o.Whole)
	e.heaps.prepare(o.Heap + overhead)
	return e, nil
}

// Close closes the sockets, which frees their ports.
func (r *Receiver) Close() {
	for _, e := range r.ends {
		_ = unix.Close(e.fd)
	}
}

// Buffer returns the size that each socket obtained, in bytes.
func (r *Receiver) Buffer() int { return r.ends[0].got.Buffer }

// Receive receives until each stream has ended with its stop heap, or until ctx has ended and the
// sockets are empty. It also returns if nothing arrives for the time of silence, or at the
// beginning for the time of quiet. It can be called again for a new session, and then discards the
// rest of the previous streams.
func (r *Receiver) Receive(ctx context.Context, quiet, silence time.Duration) (Received, error) {
	group, ctx := errgroup.WithContext(ctx)
	for _, e := range r.ends {
		group.Go(func() error { return e.receive(ctx, quiet, silence) })
	}
	err := group.Wait()
	var all Received
	var first, latest time.Time
	for _, e := range r.ends {
		all.add(e.result())
		if !e.first.IsZero() && (first.IsZero() || e.first.Before(first)) {
			first = e.first
		}
		if e.latest.After(latest) {
			latest = e.latest
		}
	}
	all.Seconds = latest.Sub(first).Seconds()
	return all, err
}

// Reset discards the packets in the sockets and resets all counts.
func (r *Receiver) Reset() error {
	for _, e := range r.ends {
		if err := e.reset(r.options.Whole); err != nil {
			return err
		}
	}
	return nil
}

func (e *receiveSocket) receive(ctx context.Context, quiet, silence time.Duration) error {
	runtime.LockOSThread() // keeps the processor's caches warm, and the kernel schedules a single thread
	defer runtime.UnlockOSThread()
	last := time.Now()
	ending := last // the last time when ctx was not done
	for !e.stopped {
		n, err := e.batch.receive(e.fd)
		if err != nil {
			return problem.New(problem.Failed, "receiving SPEAD failed").Because(err)
		}
		now := time.Now()
		if n > 0 {
			if e.first.IsZero() {
				e.first = now
			}
			last, e.latest = now, now
			e.decodeMessages(n)
			if ctx.Err() == nil {
				ending = now
			} else if now.Sub(ending) > maxDrainTime {
				return nil
			}
			continue
		}
		if waitReadable(e.fd, readTimeout) {
			continue
		}
		now = time.Now()
		limit := silence
		if e.first.IsZero() {
			limit = quiet
		}
		if ctx.Err() != nil || now.Sub(last) > limit {
			return nil
		}
	}
	return nil
}

// decodeMessages decodes the packets of n messages.
func (e *receiveSocket) decodeMessages(n int) {
	e.got.Calls++
	var p Packet
	for data := range e.batch.packets(n) {
		e.got.Packets++
		e.got.Data += uint64(len(data))
		if err := p.Decode(data); err != nil {
			e.got.Damaged++
			continue
		}
		if p.Stop {
			e.stopped = true
			e.got.Packets-- // not data: senders do not count it either
			e.got.Data -= uint64(len(data))
			continue
		}
		e.heaps.add(&p)
	}
}

// result ends the session of a socket.
func (e *receiveSocket) result() Received {
	e.heaps.flush()
	r := e.got
	r.Heaps, r.Partial, r.Bytes, r.InWhole, r.Twice = e.heaps.Heaps, e.heaps.Partial, e.heaps.Bytes, e.heaps.Packets,
		e.heaps.Twice
	if now, err := socketDrops(e.fd); err == nil {
		r.Dropped = now - e.drops
	}
	if e.stopped {
		r.Stopped = 1
	}
	return r
}

func (e *receiveSocket) reset(whole func(*Heap)) error {
	free := e.heaps.free
	e.heaps = newAssembly(whole)
	e.heaps.free = free
	e.got = Received{Buffer: e.got.Buffer, GRO: e.got.GRO}
	e.stopped, e.first, e.latest = false, time.Time{}, time.Time{}
	for {
		n, err := e.batch.receive(e.fd)
		if err != nil || n == 0 {
			e.drops, _ = socketDrops(e.fd)
			return err
		}
	}
}

func (r *Received) add(more Received) {
	r.Heaps += more.Heaps
	r.Partial += more.Partial
	r.Bytes += more.Bytes
	r.Packets += more.Packets
	r.InWhole += more.InWhole
	r.Data += more.Data
	r.Damaged += more.Damaged
	r.Twice += more.Twice
	r.Dropped += more.Dropped
	r.Calls += more.Calls
	r.Stopped += more.Stopped
	r.Buffer, r.GRO = more.Buffer, more.GRO
}
