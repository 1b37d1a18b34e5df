package chunks

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A Source is a host from which pieces can be fetched.
type Source struct {
	Name string
	Open func(ctx context.Context) (net.Conn, error)
	// Fallback means that the source is asked only if another fails, or if nothing has arrived from
	// the others for fallbackAfter.
	Fallback bool
}

// FirstIndex requests the index from one host after another until one passes the check. It returns
// that index and the name of its host. It calls warn for each host that fails.
func FirstIndex(ctx context.Context, from []Source, check func(text []byte) (*Index, error),
	warn func(string)) (x *Index, complete []byte, whose string, err error) {
	for _, s := range from {
		text, wrong := s.index(ctx)
		if wrong == nil {
			if x, wrong = check(text); wrong == nil {
				return x, text, s.Name, nil
			}
		}
		wrong = fmt.Errorf("host %s: %w", s.Name, wrong)
		err = errors.Join(err, wrong)
		if ctx.Err() != nil {
			break
		}
		warn(wrong.Error())
	}
	return nil, nil, "", cmp.Or(err, errNoSource)
}

// errNoSource is the error when all sources have failed.
var errNoSource = errors.New("no host can send it")

func (s *Source) index(ctx context.Context) ([]byte, error) {
	c, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // it was only read
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if err := request(c, fetchRequest{Index: true}); err != nil {
		return nil, err
	}
	return readAnswer(c, maxPackedBytes)
}

// fallbackAfter is how long nothing must have arrived before fallbacks are asked.
const fallbackAfter = 2 * time.Second

// Fetch requests the missing pieces from all hosts at once. It returns how many bytes have come
// from each. It calls warn for each host that fails and requests that host's pieces from the
// others.
func (r *Download) Fetch(ctx context.Context, from []Source, warn func(string)) (came map[string]int64, err error) {
	r.mutex.Lock()
	f := &fetch{Download: r, warn: warn, queue: slices.Clone(r.order), asked: map[Piece]int{}, came: map[string]int64{}}
	r.mutex.Unlock()
	f.changed = sync.NewCond(&f.lock)
	f.ctx, f.cancel = context.WithCancel(ctx)
	defer f.cancel()
	defer context.AfterFunc(f.ctx, f.wake)()
	var fallbacks []Source
	for _, s := range from {
		if s.Fallback {
			fallbacks = append(fallbacks, s)
			continue
		}
		f.request(s)
	}
	f.wait(fallbacks)
	f.all.Wait()
	f.lock.Lock()
	defer f.lock.Unlock()
	switch {
	case f.complete():
		return f.came, nil
	case ctx.Err() != nil:
		return f.came, context.Cause(ctx)
	case len(from) == 0:
		return f.came, errNoSource
	}
	return f.came, cmp.Or(f.fatal, f.failed)
}

// fetch is the state of one call of Fetch.
type fetch struct {
	*Download
	ctx    context.Context
	cancel func()
	warn   func(string)
	all    sync.WaitGroup

	lock    sync.Mutex
	changed *sync.Cond
	queue   []Piece
	asked   map[Piece]int // how many hosts were asked for each piece
	active  int
	failed  error // an error of a source
	fatal   error // an error of this host
	came    map[string]int64
	last    time.Time // when the last piece arrived
}

func (f *fetch) wake() {
	f.lock.Lock()
	f.changed.Broadcast()
	f.lock.Unlock()
}

// complete reports whether all pieces have arrived.
func (f *fetch) complete() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.left == 0
}

// wait waits until all pieces have arrived or no source is left. It asks the fallbacks when that
// becomes necessary.
func (f *fetch) wait(fallbacks []Source) {
	tick := time.NewTicker(fallbackAfter / 8)
	defer tick.Stop()
	f.lock.Lock()
	defer f.lock.Unlock()
	f.last = time.Now()
	go func() {
		for {
			select {
			case <-tick.C:
				f.wake()
			case <-f.ctx.Done():
				return
			}
		}
	}()
	for !f.complete() && f.ctx.Err() == nil && f.fatal == nil {
		if len(fallbacks) > 0 && (f.failed != nil || f.active == 0 || time.Since(f.last) > fallbackAfter) {
			for _, s := range fallbacks {
				f.active++
				f.start(s)
			}
			fallbacks = nil
		}
		if f.active == 0 {
			break
		}
		f.changed.Wait()
		f.retryLate()
	}
	f.cancel()
}

// request begins to ask a host for missing pieces.
func (f *fetch) request(s Source) {
	f.lock.Lock()
	f.active++
	f.lock.Unlock()
	f.start(s)
}

func (f *fetch) start(s Source) {
	f.all.Go(func() {
		g := &sourceWorker{fetch: f, from: s}
		err := g.all()
		f.lock.Lock()
		defer f.lock.Unlock()
		for _, p := range g.open { // the other hosts may be asked for these
			if f.asked[p]--; f.asked[p] == 0 {
				f.queue = append(f.queue, p)
			}
		}
		f.active--
		var own *localError
		switch {
		case err == nil || f.ctx.Err() != nil:
		case errors.As(err, &own):
			f.fatal = err
		default:
			f.warn(fmt.Sprintf("host %s is not used any more: %v", s.Name, problem.PathErrorCause(err)))
			f.failed = errors.Join(f.failed, fmt.Errorf("host %s: %w", s.Name, err))
		}
		f.changed.Broadcast()
	})
}

// next returns pieces to request from the host. It returns nil if no more are needed.
func (g *sourceWorker) next() (batch []Piece) {
	f := g.fetch
	f.lock.Lock()
	defer f.lock.Unlock()
	for f.ctx.Err() == nil && !g.ended && !f.complete() {
		var bytes int64
		var rest []Piece
		for len(f.queue) > 0 && len(batch) < maxPieces && bytes < PieceSize {
			p := f.queue[0]
			f.queue = f.queue[1:]
			switch {
			case f.has(p):
			case f.asked[p] > 0 && slices.Contains(g.open, p): // this host has been asked and is late
				rest = append(rest, p)
			default:
				batch, bytes = append(batch, p), bytes+f.files[p.Sum].length(p.N)
				f.asked[p]++
			}
		}
		f.queue = append(rest, f.queue...)
		if len(batch) > 0 {
			g.open = append(g.open, batch...)
			return batch
		}
		f.changed.Wait()
	}
	return nil
}

// retryLate puts pieces that only one host was asked for back into the queue when nothing has
// arrived for fallbackAfter.
func (f *fetch) retryLate() {
	if len(f.queue) > 0 || time.Since(f.last) < fallbackAfter {
		return
	}
	for _, p := range f.order {
		if f.asked[p] == 1 && !f.has(p) {
			f.queue = append(f.queue, p)
		}
	}
	f.last = time.Now()
	f.changed.Broadcast()
}

func (f *fetch) has(p Piece) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.files[p.Sum].got[p.N]
}

// sourceWorker is a host that is asked for pieces.
type sourceWorker struct {
	*fetch
	from  Source
	open  []Piece // requested pieces that have not arrived, in the order of their requests
	ended bool
}

// maxInFlight is the maximum number of unanswered requests to one host.
const maxInFlight = 2

// all requests pieces until none are missing.
func (g *sourceWorker) all() error {
	c, err := g.from.Open(g.ctx)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all that was wanted has come
	defer context.AfterFunc(g.ctx, func() { _ = c.Close() })()
	batches, places := make(chan []Piece, maxInFlight), make(chan struct{}, maxInFlight)
	over := make(chan struct{})
	var asks sync.WaitGroup
	defer asks.Wait()
	defer g.end(c, over)
	asks.Go(func() {
		defer close(batches)
		for {
			select {
			case places <- struct{}{}:
			case <-over:
				return
			}
			batch := g.next()
			if batch == nil {
				return
			}
			if request(c, fetchRequest{Pieces: batch}) != nil {
				_ = c.Close()
			}
			select {
			case batches <- batch:
			case <-over:
				return
			}
		}
	})
	in := bufio.NewReaderSize(c, 256<<10)
	for batch := range batches {
		for _, p := range batch {
			if err := g.one(in, p); err != nil {
				return err
			}
		}
		<-places
	}
	return nil
}

// end stops asking the host.
func (g *sourceWorker) end(c net.Conn, over chan struct{}) {
	_ = c.Close()
	g.lock.Lock()
	defer g.lock.Unlock()
	g.ended = true
	close(over)
	g.changed.Broadcast()
}

// one receives and stores one piece.
func (g *sourceWorker) one(in io.Reader, p Piece) error {
	content, err := readAnswer(in, g.files[p.Sum].length(p.N))
	if err != nil {
		return err
	}
	if err := g.store(p, content); err != nil {
		if errors.Is(err, ErrCorrupt) {
			return fmt.Errorf("%w: %s", err, g.nameOf(p))
		}
		return err
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	g.came[g.from.Name] += int64(len(content))
	g.last = time.Now()
	g.open = g.open[1:]
	if g.complete() {
		g.changed.Broadcast()
	}
	return nil
}

// nameOf returns a path whose file contains a piece.
func (r *Download) nameOf(p Piece) string {
	for i := range r.Index.Entries {
		if e := &r.Index.Entries[i]; e.Sum == p.Sum {
			return "its /" + tree.DisplayPath(string(e.Name))
		}
	}
	return "a file"
}
