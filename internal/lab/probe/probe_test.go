package probe

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"orrery/internal/problem"
)

// TestProbe reads the files of testdata, so that it does not depend on the load of the machine.
func TestProbe(t *testing.T) {
	root := t.TempDir()
	lay(t, "testdata/before", root)
	var mutex sync.Mutex
	var all []Second
	delivered := func() []Second {
		mutex.Lock()
		defer mutex.Unlock()
		return slices.Clone(all)
	}
	starting := time.Now()
	p, err := Start(t.Context(), Options{Root: root, Cgroups: groups, Every: 50 * time.Millisecond,
		Deliver: func(s Second) {
			mutex.Lock()
			defer mutex.Unlock()
			all = append(all, s)
		}})
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	time.Sleep(120 * time.Millisecond)
	lay(t, "testdata/after", root)
	cutting := time.Now()
	p.Cut()
	got := delivered()
	n := len(got)
	// A reading may have come between the lines of the files. All seconds together have the
	// expected counts.
	var forks uint64
	for _, s := range got {
		forks += s.Forks
	}
	if n == 0 || forks != 3 || got[n-1].At.Before(cutting) {
		t.Fatalf("the cut did not give what happened: %+v", got)
	}
	time.Sleep(60 * time.Millisecond)
	stopping := time.Now()
	p.Stop()
	stopped := time.Now()
	p.Stop()
	p.Cut() // has no effect after Stop
	var took float64
	got = delivered()
	for i, s := range got {
		took += s.Took
		if i > 0 && !s.At.After(got[i-1].At) {
			t.Errorf("%s after %s", s.At, got[i-1].At)
		}
		if i >= n && s.Forks > 0 {
			t.Error("what happened before the cut is in the next second, too")
		}
	}
	const rounding = 1e-4
	if least, most := stopping.Sub(started).Seconds(), stopped.Sub(starting).Seconds(); took > most+rounding ||
		took < least-rounding {
		t.Errorf("seconds of %.4f s in all, not of %.4f to %.4f s", took, least, most)
	}
	if c := p.Cost(); c.CPU <= 0 || c.Took <= 0 || c.Share() <= 0 {
		t.Errorf("%+v", c)
	}
}

func TestContextEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := Start(ctx, Options{Root: "testdata/before"})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-p.done
}

func TestNoProc(t *testing.T) {
	var p *problem.Problem
	if _, err := Start(t.Context(), Options{Root: t.TempDir()}); !errors.As(err, &p) || p.Kind != problem.Unable ||
		p.Cure == "" {
		t.Error(err)
	}
}

// TestUntilNext: the times of reading do not drift, and missed readings are skipped.
func TestUntilNext(t *testing.T) {
	for since, want := range map[time.Duration]time.Duration{
		0: time.Second, time.Millisecond: 999 * time.Millisecond, 1700 * time.Millisecond: 300 * time.Millisecond,
		7 * time.Second: time.Second,
	} {
		if got := untilNext(since, time.Second); got != want {
			t.Errorf("%s after the start: %s", since, got)
		}
	}
}

func TestBaseline(t *testing.T) {
	if _, err := os.Stat("/proc/stat"); err != nil {
		t.Skip("no /proc here: ", err)
	}
	c, err := Baseline(t.Context(), 50*time.Millisecond)
	if err != nil || c.Total <= 0 || c.Share() < 0 || c.Share() > 1 {
		t.Errorf("%+v %v", c, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var p *problem.Problem
	if _, err := Baseline(ctx, time.Hour); !errors.As(err, &p) || p.Kind != problem.Interrupted {
		t.Error(err)
	}
}

// TestFilesAreClosed: a probe leaves no file open.
func TestFilesAreClosed(t *testing.T) {
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc here: ", err)
		}
		return len(all)
	}
	before := open()
	p, err := Start(t.Context(), Options{Root: "testdata/before", Cgroups: groups})
	if err != nil {
		t.Fatal(err)
	}
	if open() <= before {
		t.Error("nothing is kept open")
	}
	p.Stop()
	if after := open(); after > before {
		t.Errorf("%d files are open, %d were", after, before)
	}
}
