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

// ReceiveOptions say where and how to receive.
type ReceiveOptions struct {
	At      netip.AddrPort // the first socket's; each other has the next port
	Sockets int            // each with a thread and a stream of its own
	Buffer  int            // of each socket, in bytes
	Packet  int            // the largest packet, in bytes: longer ones are cut, and count as damaged
	Heap    int            // memory is ready for heaps of so many bytes; larger ones take theirs when they come
	Whole   func(*Heap)    // is called for each whole heap, of one socket after another; nil: heaps are only counted
}

// Received is what came in a session.
type Received struct {
	Heaps   uint64 `json:"heaps"`    // whole
	Partial uint64 `json:"partial"`  // that something was missing of
	Bytes   uint64 `json:"bytes"`    // of payload, of whole heaps
	Packets uint64 `json:"packets"`  // that the kernel delivered
	InWhole uint64 `json:"in_whole"` // packets in whole heaps
	Data    uint64 `json:"data"`     // bytes of all packets delivered, with their SPEAD headers
	Damaged uint64 `json:"damaged"`  // packets that were none of SPEAD-64
	Twice   uint64 `json:"twice"`    // packets that had come before
	// times that the kernel found a socket's buffer full; packets put together count as one
	Dropped uint64  `json:"dropped"`
	Calls   uint64  `json:"calls"`   // of recvmmsg that brought something
	Stopped int     `json:"stopped"` // streams whose end was received
	Seconds float64 `json:"seconds"` // from the first packet to the last
	Buffer  int     `json:"buffer"`  // of each socket, in bytes, as it was obtained
	GRO     bool    `json:"gro"`     // the kernel puts packets together
}

// A Receiver has sockets that are bound: packets are kept for it from now on.
type Receiver struct {
	options ReceiveOptions
	ends    []*end
}

// An end is one socket and the heaps that are received by it.
type end struct {
	fd      int
	batch   *batch
	heaps   *assembly
	got     Received
	drops   uint64 // of the socket, before
	first   time.Time
	latest  time.Time
	stopped bool
}

// readTimeout is how long a packet is waited for before it is looked whether to go on.
const readTimeout = 20 * time.Millisecond

// longestEnd is how long packets are still taken after the end was ordered, if they come without a pause.
const longestEnd = time.Second

// Listen binds the sockets.
func Listen(o ReceiveOptions) (*Receiver, error) {
	r := &Receiver{options: o}
	for i := range max(o.Sockets, 1) {
		at := netip.AddrPortFrom(o.At.Addr(), o.At.Port()+uint16(i))
		e, err := newEnd(at, o)
		if err != nil {
			r.Close()
			return nil, problem.New(problem.Failed, "cannot receive SPEAD at UDP %v", at).Because(err).
				Try("ss -ulnp shows who holds the port")
		}
		r.ends = append(r.ends, e)
	}
	return r, nil
}

func newEnd(at netip.AddrPort, o ReceiveOptions) (*end, error) {
	fd, err := open(at.Addr())
	if err != nil {
		return nil, err
	}
	e := &end{fd: fd}
	e.got.Buffer, err = buffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, o.Buffer)
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

// Buffer is what each socket has obtained, in bytes.
func (r *Receiver) Buffer() int { return r.ends[0].got.Buffer }

// Receive receives until each stream has ended by its stop heap, until ctx has ended and nothing is
// left in the sockets, or until nothing comes for the time of silence, but for the time of quiet at
// first. It may be called again, and begins anew then: what is left of a former stream is thrown
// away.
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

// Reset throws away what is in the sockets and what was counted.
func (r *Receiver) Reset() error {
	for _, e := range r.ends {
		if err := e.reset(r.options.Whole); err != nil {
			return err
		}
	}
	return nil
}

func (e *end) receive(ctx context.Context, quiet, silence time.Duration) error {
	runtime.LockOSThread() // the processor's caches stay warm, and the scheduler knows one thread
	defer runtime.UnlockOSThread()
	last := time.Now()
	ending := last // when ctx was not done yet
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
			e.take(n)
			if ctx.Err() == nil {
				ending = now
			} else if now.Sub(ending) > longestEnd {
				return nil
			}
			continue
		}
		if await(e.fd, readTimeout) {
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

// take takes the packets of n messages apart.
func (e *end) take(n int) {
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
			e.got.Packets-- // it is not of the data: senders do not count it either
			e.got.Data -= uint64(len(data))
			continue
		}
		e.heaps.add(&p)
	}
}

// result ends the session of a socket.
func (e *end) result() Received {
	e.heaps.flush()
	r := e.got
	r.Heaps, r.Partial, r.Bytes, r.InWhole, r.Twice = e.heaps.Heaps, e.heaps.Partial, e.heaps.Bytes, e.heaps.Packets,
		e.heaps.Twice
	if now, err := dropped(e.fd); err == nil {
		r.Dropped = now - e.drops
	}
	if e.stopped {
		r.Stopped = 1
	}
	return r
}

func (e *end) reset(whole func(*Heap)) error {
	free := e.heaps.free
	e.heaps = newAssembly(whole)
	e.heaps.free = free
	e.got = Received{Buffer: e.got.Buffer, GRO: e.got.GRO}
	e.stopped, e.first, e.latest = false, time.Time{}, time.Time{}
	for {
		n, err := e.batch.receive(e.fd)
		if err != nil || n == 0 {
			e.drops, _ = dropped(e.fd)
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
