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

// A Source is a host that gives.
type Source struct {
	Name string
	Open func(ctx context.Context) (net.Conn, error)
	// Reserve is asked only if one of the others fails, or nothing comes from them for a while.
	Reserve bool
}

// FirstIndex asks one host after the other for an index, until one gives one that holds, and says whose it is. Doubt is told of those before.
func FirstIndex(ctx context.Context, from []Source, check func(text []byte) (*Index, error), doubt func(string)) (x *Index, whole []byte, whose string, err error) {
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
		doubt(wrong.Error())
	}
	return nil, nil, "", cmp.Or(err, errNobody)
}

// errNobody is the end of all sources.
var errNobody = errors.New("no host is left that could give it")

func (s *Source) index(ctx context.Context) ([]byte, error) {
	c, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // it was only read
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if err := ask(c, question{Index: true}); err != nil {
		return nil, err
	}
	return hear(c, mostPacked)
}

// quiet is how long nothing comes before those in reserve are asked.
const quiet = 2 * time.Second

// Fetch asks hosts for the pieces that are missing, all at once, each as fast as it gives. It returns what came from each. Doubt is told of those that fail; what they were asked for, others are.
func (r *Receiving) Fetch(ctx context.Context, from []Source, doubt func(string)) (came map[string]int64, err error) {
	r.mutex.Lock()
	f := &fetching{Receiving: r, doubt: doubt, queue: slices.Clone(r.order), asked: map[Piece]int{}, came: map[string]int64{}}
	r.mutex.Unlock()
	f.changed = sync.NewCond(&f.lock)
	f.ctx, f.cancel = context.WithCancel(ctx)
	defer f.cancel()
	defer context.AfterFunc(f.ctx, f.wake)()
	var reserve []Source
	for _, s := range from {
		if s.Reserve {
			reserve = append(reserve, s)
			continue
		}
		f.ask(s)
	}
	f.attend(reserve)
	f.all.Wait()
	f.lock.Lock()
	defer f.lock.Unlock()
	switch {
	case f.whole():
		return f.came, nil
	case ctx.Err() != nil:
		return f.came, context.Cause(ctx)
	case len(from) == 0:
		return f.came, errNobody
	}
	return f.came, cmp.Or(f.fatal, f.failed)
}

// fetching is one call of Fetch.
type fetching struct {
	*Receiving
	ctx    context.Context
	cancel func()
	doubt  func(string)
	all    sync.WaitGroup

	lock    sync.Mutex
	changed *sync.Cond
	queue   []Piece
	asked   map[Piece]int // of how many hosts
	working int
	failed  error // of hosts
	fatal   error // of this one
	came    map[string]int64
	last    time.Time // when something came
}

func (f *fetching) wake() {
	f.lock.Lock()
	f.changed.Broadcast()
	f.lock.Unlock()
}

// whole reports whether all has come.
func (f *fetching) whole() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.left == 0
}

// attend waits until all has come or nobody gives any more, and asks those in reserve if need be.
func (f *fetching) attend(reserve []Source) {
	tick := time.NewTicker(quiet / 8)
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
	for !f.whole() && f.ctx.Err() == nil && f.fatal == nil {
		if len(reserve) > 0 && (f.failed != nil || f.working == 0 || time.Since(f.last) > quiet) {
			for _, s := range reserve {
				f.working++
				f.start(s)
			}
			reserve = nil
		}
		if f.working == 0 {
			break
		}
		f.changed.Wait()
		f.late()
	}
	f.cancel()
}

// ask lets a host give what is missing.
func (f *fetching) ask(s Source) {
	f.lock.Lock()
	f.working++
	f.lock.Unlock()
	f.start(s)
}

func (f *fetching) start(s Source) {
	f.all.Go(func() {
		g := &giving{fetching: f, from: s}
		err := g.all()
		f.lock.Lock()
		defer f.lock.Unlock()
		for _, p := range g.open { // for others
			if f.asked[p]--; f.asked[p] == 0 {
				f.queue = append(f.queue, p)
			}
		}
		f.working--
		var own *keepError
		switch {
		case err == nil || f.ctx.Err() != nil:
		case errors.As(err, &own):
			f.fatal = err
		default:
			f.doubt(fmt.Sprintf("host %s gives no more: %v", s.Name, problem.Reason(err)))
			f.failed = errors.Join(f.failed, fmt.Errorf("host %s: %w", s.Name, err))
		}
		f.changed.Broadcast()
	})
}

// next gives pieces of which a host can be asked at once; none: it is not needed any more.
func (g *giving) next() (batch []Piece) {
	f := g.fetching
	f.lock.Lock()
	defer f.lock.Unlock()
	for f.ctx.Err() == nil && !g.ended && !f.whole() {
		var bytes int64
		var rest []Piece
		for len(f.queue) > 0 && len(batch) < mostPieces && bytes < Size {
			p := f.queue[0]
			f.queue = f.queue[1:]
			switch {
			case f.has(p):
			case f.asked[p] > 0 && slices.Contains(g.open, p): // it is late with that
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

// late lets others be asked for what one host has been asked for, when nothing comes.
func (f *fetching) late() {
	if len(f.queue) > 0 || time.Since(f.last) < quiet {
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

func (f *fetching) has(p Piece) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.files[p.Sum].got[p.N]
}

// giving is one host that gives.
type giving struct {
	*fetching
	from  Source
	open  []Piece // asked for and not come, in the order in which they are to come
	ended bool
}

// depth is how many questions are under way to a host.
const depth = 2

// all asks for pieces as long as some are missing.
func (g *giving) all() error {
	c, err := g.from.Open(g.ctx)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all that was wanted has come
	defer context.AfterFunc(g.ctx, func() { _ = c.Close() })()
	batches, places := make(chan []Piece, depth), make(chan struct{}, depth)
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
			if ask(c, question{Pieces: batch}) != nil {
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

// end lets nothing more be asked of the host.
func (g *giving) end(c net.Conn, over chan struct{}) {
	_ = c.Close()
	g.lock.Lock()
	defer g.lock.Unlock()
	g.ended = true
	close(over)
	g.changed.Broadcast()
}

// one takes one piece in.
func (g *giving) one(in io.Reader, p Piece) error {
	content, err := hear(in, g.files[p.Sum].length(p.N))
	if err != nil {
		return err
	}
	if err := g.take(p, content); err != nil {
		if errors.Is(err, ErrLie) {
			return fmt.Errorf("%w: %s", err, g.nameOf(p))
		}
		return err
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	g.came[g.from.Name] += int64(len(content))
	g.last = time.Now()
	g.open = g.open[1:]
	if g.whole() {
		g.changed.Broadcast()
	}
	return nil
}

// nameOf gives a path of what a piece is of.
func (r *Receiving) nameOf(p Piece) string {
	for i := range r.Index.Entries {
		if e := &r.Index.Entries[i]; e.Sum == p.Sum {
			return "its /" + tree.Shorten(string(e.Name))
		}
	}
	return "a file"
}
