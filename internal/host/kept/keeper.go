package kept

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"orrery/internal/problem"
	"orrery/internal/turn"
)

// How often a kept connection is asked for a sign of life, how long that may take, and how long ssh has to end by itself.
var ( // but in tests
	pulse    = 2 * time.Second
	patience = 7 * time.Second
	parting  = time.Second
)

// mostKept is how many connections are kept at most.
const mostKept = 4096

// idle is how long there may be none before the process ends.
var idle = 2 * time.Second // but in tests

// A keeper has the connections.
type keeper struct {
	shelf Shelf
	mutex sync.Mutex
	held  map[string]*held
	since time.Time // when somebody last asked for something
	under sync.WaitGroup

	socket os.FileInfo // of this process
}

// held is a connection that is kept.
type held struct {
	*Ends
	until time.Time
	stop  chan struct{} // closed when somebody takes it
	free  chan bool     // whether it is well, when nobody uses it any more
}

// Keep keeps connections for whoever has this user and comes by the socket that this process was started with, until there are none. Dir is where the socket is.
func Keep(ctx context.Context, dir string) error {
	f := os.NewFile(3, "socket")
	if f == nil {
		return notByHand()
	}
	any, err := net.FileListener(f)
	if err != nil {
		return notByHand()
	}
	f.Close() //nolint:errcheck // the listener has its own
	l, ok := any.(*net.UnixListener)
	if !ok {
		return notByHand()
	}
	return begin(Shelf{Dir: dir}).keep(ctx, l)
}

func begin(s Shelf) *keeper {
	k := &keeper{shelf: s, held: map[string]*held{}, since: time.Now()}
	k.socket, _ = os.Lstat(s.socket())
	return k
}

func notByHand() error { return problem.New(problem.Usage, "%s is started by orrery itself", Verb) }

func (k *keeper) keep(ctx context.Context, l *net.UnixListener) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	l.SetUnlinkOnClose(false)
	k.under.Go(func() { k.watch(ctx, l) })
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			break
		}
		// One after the other: who gives a connection must find it there when he comes again.
		if own(c) == nil && c.SetDeadline(time.Now().Add(brisk)) == nil {
			k.answer(c)
		}
		_ = c.Close()
	}
	end()
	k.clear()
	k.under.Wait()
	return nil
}

// clear ends all connections.
func (k *keeper) clear() {
	k.mutex.Lock()
	all := k.held
	k.held = map[string]*held{}
	k.mutex.Unlock()
	for _, h := range all {
		h.take()
		k.under.Go(h.end)
	}
}

// watch ends the process when nothing is left to keep. Who has just come is answered still.
func (k *keeper) watch(ctx context.Context, l *net.UnixListener) {
	tick := time.NewTicker(idle / 4)
	defer tick.Stop()
	for ctx.Err() == nil && !k.forsaken() {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	k.withdraw()
	_ = l.SetDeadline(time.Now().Add(min(idle/20, 100*time.Millisecond)))
}

func (k *keeper) forsaken() bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return len(k.held) == 0 && time.Since(k.since) > idle
}

// withdraw removes the name of the socket, unless it is another's by now.
func (k *keeper) withdraw() {
	ctx, cancel := context.WithTimeout(context.Background(), brisk)
	defer cancel()
	lock, err := k.shelf.lock(ctx)
	if err != nil {
		return
	}
	defer lock.Release()
	if now, err := os.Lstat(k.shelf.socket()); err == nil && os.SameFile(k.socket, now) {
		_ = os.Remove(k.shelf.socket())
	}
}

// answer does what somebody asks for.
func (k *keeper) answer(c *net.UnixConn) {
	var r request
	got, err := receive(c, &r)
	if err != nil {
		return
	}
	k.mutex.Lock()
	k.since = time.Now()
	k.mutex.Unlock()
	switch {
	case r.Verb == toKeep && len(got) == files:
		k.put(r.Key, endsOf(got, r.Born), min(r.For, longest))
		return
	case r.Verb == toTake:
		k.give(c, r.Key)
	}
	discard(got)
}

// put keeps a connection, unless there is one already.
func (k *keeper) put(key string, e *Ends, long time.Duration) {
	h := &held{Ends: e, until: time.Now().Add(long), stop: make(chan struct{}), free: make(chan bool, 1)}
	k.mutex.Lock()
	_, there := k.held[key]
	if there = there || len(k.held) >= mostKept; !there {
		k.held[key] = h
	}
	k.mutex.Unlock()
	if there {
		k.under.Go(h.end)
		return
	}
	k.under.Go(func() {
		well := h.tend()
		h.free <- well
		if !well {
			k.drop(key, h)
		}
	})
}

// drop ends a connection that nobody has taken.
func (k *keeper) drop(key string, h *held) {
	k.mutex.Lock()
	mine := k.held[key] == h
	if mine {
		delete(k.held, key)
	}
	k.mutex.Unlock()
	if mine {
		h.end()
	}
}

// give sends a kept connection to the process that asks for it.
func (k *keeper) give(c *net.UnixConn, key string) {
	k.mutex.Lock()
	h := k.held[key]
	delete(k.held, key)
	k.mutex.Unlock()
	if h == nil {
		_ = send(c, answer{})
		return
	}
	if !h.take() {
		k.under.Go(h.end)
		_ = send(c, answer{})
		return
	}
	_ = h.From.SetReadDeadline(time.Time{})
	_ = send(c, answer{Born: h.Born}, h.all()...)
	h.Close()
}

// take stops what tends a connection, and tells whether that was well until now.
func (h *held) take() bool {
	close(h.stop)
	_ = h.From.SetReadDeadline(time.Unix(1, 0))
	return <-h.free
}

// tend asks a connection for signs of life until somebody takes it. It is false when there is none, or the time is up.
func (h *held) tend() bool {
	up := time.NewTimer(time.Until(h.until))
	defer up.Stop()
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	answered := make([]byte, 1)
	for {
		select {
		case <-h.stop:
			return true
		case <-up.C:
			return false
		case <-tick.C:
		}
		_ = h.To.SetWriteDeadline(time.Now().Add(patience))
		if _, err := h.To.Write([]byte{turn.Pulse}); err != nil {
			return false
		}
		if h.stopped() {
			return true
		}
		_ = h.From.SetReadDeadline(time.Now().Add(patience))
		if h.stopped() {
			return true // it may have been taken before that
		}
		switch _, err := h.From.Read(answered); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return h.stopped()
		case err != nil || answered[0] != turn.Pulse:
			return false
		}
	}
}

func (h *held) stopped() bool {
	select {
	case <-h.stop:
		return true
	default:
		return false
	}
}

// end ends a connection: ssh is to end as its input does, and is ended if it does not.
func (h *held) end() {
	_ = h.To.Close()
	over := make([]byte, 1)
	_ = h.Errs.SetReadDeadline(time.Now().Add(parting))
	for {
		if _, err := h.Errs.Read(over); err != nil {
			break
		}
	}
	h.Kill()
	h.Close()
}
