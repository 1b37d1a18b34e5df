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

// Options are the options of a probe.
type Options struct {
	// Cgroups are the control groups whose processor time is recorded: paths from the root of the
	// hierarchies, by name. They may be created later.
	Cgroups map[string]string
	Every   time.Duration // interval between readings, or 0 for a second
	// Deliver is called for each second, in order, by one goroutine. It delays the next reading.
	Deliver func(Second)
	Root    string // directory that contains /proc and /sys of the host, or "" for "/"
}

// A Probe reads at fixed times until it is stopped.
type Probe struct {
	cuts chan chan struct{}
	stop context.CancelFunc
	done chan struct{}

	mu   sync.Mutex
	cost Cost
}

// Cost is the processor time of the probe itself.
type Cost struct {
	CPU  time.Duration // of the thread that reads and delivers
	Took time.Duration // since the first reading, which opens all files before any trial
}

// Share returns the share of one processor, from 0 to 1.
func (c Cost) Share() float64 {
	if c.Took <= 0 {
		return 0
	}
	return float64(c.CPU) / float64(c.Took)
}

// Start starts a probe. It ends with its context or with Stop.
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

// Stop reads and delivers a last time, and returns when the probe has ended.
func (p *Probe) Stop() {
	p.stop()
	<-p.done
}

// Cut reads and delivers immediately, so that what follows is in another second, for example at the
// beginning and the end of a trial. It returns afterwards.
func (p *Probe) Cut() {
	made := make(chan struct{})
	select {
	case p.cuts <- made:
		<-made
	case <-p.done:
	}
}

// Cost returns the cost up to the last reading.
func (p *Probe) Cost() Cost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost
}

// run reads on a separate thread, whose processor time is the cost.
func (p *Probe) run(ctx context.Context, o Options, begun chan struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	r := newReader(o.Root, o.Cgroups)
	defer r.close()
	r.read() // the start of the first second
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
		// A short interval just after a cut would contain too few of the kernel's ticks. Merge it
		// with the next one.
		if time.Since(r.at) > o.Every/4 {
			deliver()
		}
		timer.Reset(untilNext(time.Since(start), o.Every))
	}
}

// untilNext returns the time until the next multiple of the interval, so that delays do not add up.
// Missed readings are skipped.
func untilNext(since, every time.Duration) time.Duration { return every - since%every }

// threadTime returns the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Baseline measures the processor time of the idle host for a while. Its Share is what the host
// itself uses.
func Baseline(ctx context.Context, d time.Duration) (CPU, error) {
	before, err := ReadCPU()
	if err != nil {
		return CPU{}, err
	}
	select {
	case <-ctx.Done():
		return CPU{}, problem.New(problem.Interrupted, "cancelled while the idle host was observed").Because(ctx.Err())
	case <-time.After(d):
	}
	after, err := ReadCPU()
	return after.Since(before), err
}
