package prove

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// A load asks for more than a limit allows until it is ended.
type load interface {
	// offered returns how much the load has asked for so far, in the limit's unit times seconds, or 0 if
	// it does not know.
	offered() float64
	// err returns why the load has ended, or nil while it works.
	err() error
	end() error
}

// A loader starts loads of one kind on a node, and counts what comes through.
type loader struct {
	start func() (load, error)
	count func() (float64, error) // in the limit's unit times seconds
	// periods counts the scheduling periods of a node's processors, or is nil.
	periods func() (all, stopped uint64)
	settle  time.Duration // how long the load works before it is counted
}

// measure starts a load, counts what comes through for some seconds, and ends the load.
func (l *loader) measure(ctx context.Context, seconds float64) (r Reading, err error) {
	running, err := l.start()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, running.end()) }()
	return l.read(ctx, running, seconds)
}

// read counts what comes through of a running load.
func (l *loader) read(ctx context.Context, running load, seconds float64) (r Reading, err error) {
	if err := host.Sleep(ctx, l.settle); err != nil {
		return r, err
	}
	used, total := processorTime()
	var all, stopped uint64
	if l.periods != nil {
		all, stopped = l.periods()
	}
	wanted, at := running.offered(), time.Now()
	before, err := l.count()
	if err != nil {
		return r, err
	}
	if err := host.Sleep(ctx, time.Duration(seconds*float64(time.Second))); err != nil {
		return r, err
	}
	after, err := l.count()
	took := time.Since(at).Seconds()
	if err == nil {
		err = running.err()
	}
	if err != nil {
		return r, err
	}
	if after < before {
		return r, problem.New(problem.Surprise, "a counter was reset while it was read")
	}
	r.Rate, r.Offered = (after-before)/took, (running.offered()-wanted)/took
	if nowUsed, nowTotal := processorTime(); nowTotal > total {
		r.Busy = float64(nowUsed-used) / float64(nowTotal-total)
	}
	if l.periods != nil {
		if nowAll, nowStopped := l.periods(); nowAll > all {
			r.Stopped = float64(nowStopped-stopped) / float64(nowAll-all)
		}
	}
	return r, nil
}

// processorTime returns the host's used and whole processor time so far (proc_stat(5)). Steal counts
// as used.
func processorTime() (used, total uint64) {
	text, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(text), "\n")
	for i, word := range strings.Fields(first) {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil || i > 8 { // the name, and time of guests, which is in the others
			continue
		}
		total += n
		if i != 4 && i != 5 { // idle, and waiting for disks
			used += n
		}
	}
	return used, total
}
