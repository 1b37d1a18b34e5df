package probe

import (
	"context"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// Options say what a probe reads, and for whom.
type Options struct {
	// Cgroups are those whose processor time is told, by name: paths from the root of the hierarchies.
	// They need not be there yet.
	Cgroups map[string]string
	Every   time.Duration // between readings; 0: a second
	// Deliver gets each second. It is called by one goroutine, in order, and holds up the next reading.
	Deliver func(Second)
	Root    string // where /proc and /sys of the host are; "": "/"
}

// A Probe reads at fixed times until it is stopped.
type Probe struct {
	cuts chan chan struct{}
	stop context.CancelFunc
	done chan struct{}

	mu   sync.Mutex
	cost Cost
}

// Cost is what a probe itself took.
type Cost struct {
	CPU  time.Duration // of the thread that reads and delivers
	Took time.Duration // since its first reading; that one, which opens all files, is before any trial
}

// Share is the part of one processor, from 0 to 1.
func (c Cost) Share() float64 {
	if c.Took <= 0 {
		return 0
	}
	return float64(c.CPU) / float64(c.Took)
}

// Start starts a probe. It ends with its context, or by Stop.
func Start(ctx context.Context, o Options) (*Probe, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Deliver == nil {
		o.Deliver = func(Second) {}
	}
	if _, err := readCPU(filepath.Join(o.Root, "proc/stat")); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	p := &Probe{cuts: make(chan chan struct{}), stop: stop, done: make(chan struct{})}
	begun := make(chan struct{})
	go p.run(ctx, o, begun)
	<-begun
	return p, nil
}

// Stop reads and delivers once more what has happened since the last second, and returns when the
// probe has ended.
func (p *Probe) Stop() {
	p.stop()
	<-p.done
}

// Cut reads and delivers now, so that what follows is not within the same second: at the beginning
// and the end of a trial, for example. It returns when that is done.
func (p *Probe) Cut() {
	made := make(chan struct{})
	select {
	case p.cuts <- made:
		<-made
	case <-p.done:
	}
}

// Cost is what the probe has taken until its last reading.
func (p *Probe) Cost() Cost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost
}

// run reads on a thread of its own, whose processor time is the cost.
func (p *Probe) run(ctx context.Context, o Options, begun chan struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	r := newReader(o.Root, o.Cgroups)
	defer r.close()
	r.read() // from which the first second is counted
	start, spentBefore := time.Now(), threadTime()
	deliver := func() {
		o.Deliver(r.read())
		p.mu.Lock()
		p.cost = Cost{threadTime() - spentBefore, time.Since(start)}
		p.mu.Unlock()
	}
	close(begun)
	timer := time.NewTimer(o.Every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			deliver()
			return
		case made := <-p.cuts:
			deliver()
			close(made)
			continue
		case <-timer.C:
		}
		// A moment just after a cut would hold too few ticks of the kernel's to say anything: it joins the next.
		if time.Since(r.at) > o.Every/4 {
			deliver()
		}
		timer.Reset(untilNext(time.Since(start), o.Every))
	}
}

// untilNext is the time until the next whole multiple of a period, so that lateness does not add
// up. Those that were missed are left out.
func untilNext(since, every time.Duration) time.Duration { return every - since%every }

// threadTime is the processor time that this thread has taken.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Baseline watches an idle host for a while and returns the processor time taken meanwhile; its Share
// is what the host takes for itself.
func Baseline(ctx context.Context, d time.Duration) (CPU, error) {
	before, err := ReadCPU()
	if err != nil {
		return CPU{}, err
	}
	select {
	case <-ctx.Done():
		return CPU{}, problem.New(problem.Interrupted, "stopped while the idle host was watched").Because(ctx.Err())
	case <-time.After(d):
	}
	after, err := ReadCPU()
	return after.Since(before), err
}
