package prove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestMain lets the tests start loads as orrery-lab does: by the same program.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[2] == Verb {
		if err := Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A fakeLoad records whether it was ended.
type fakeLoad struct {
	failed error
	ended  int
}

func (f *fakeLoad) offered() float64 { return 0 }
func (f *fakeLoad) err() error       { return f.failed }
func (f *fakeLoad) end() error       { f.ended++; return nil }

// TestMeasure: whatever happens to a measurement, its load is ended once.
func TestMeasure(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	broken := errors.New("broken")
	rising := func(step float64) func() (float64, error) {
		n := 1e6
		return func() (float64, error) { n += step; return n, nil }
	}
	for name, c := range map[string]struct {
		ctx    context.Context
		failed error
		count  func() (float64, error)
		want   string
	}{
		"good":              {ctx: context.Background(), count: rising(100)},
		"interrupted":       {ctx: ctx, count: rising(100), want: "canceled"},
		"the load ended":    {ctx: context.Background(), failed: broken, count: rising(100), want: "broken"},
		"no counter":        {ctx: context.Background(), count: func() (float64, error) { return 0, broken }, want: "broken"},
		"counter was reset": {ctx: context.Background(), count: rising(-100), want: "reset"},
	} {
		running := &fakeLoad{failed: c.failed}
		l := &loader{start: func() (load, error) { return running, nil }, count: c.count}
		r, err := l.measure(c.ctx, 0.01)
		switch {
		case running.ended != 1:
			t.Errorf("%s: the load was ended %d times", name, running.ended)
		case c.want == "" && (err != nil || r.Rate <= 0):
			t.Errorf("%s: %v, %v", name, r, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWorkRefuses: text that is no order starts no load.
func TestWorkRefuses(t *testing.T) {
	for _, text := range []string{"", "x", "{", `{"spin":"x"}`, strings.Repeat(" ", 1<<13) + "{}"} {
		if err := Work(strings.NewReader(text), &bytes.Buffer{}); err == nil {
			t.Errorf("%.20q starts a load", text)
		}
	}
}

// TestChild: a load uses processors or a file until it is ended.
func TestChild(t *testing.T) {
	c, err := startChild(t.Context(), nil, nil, order{Spin: 1, Seconds: 60})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.err(), c.end()); err != nil {
		t.Error(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "load"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(fileSize); err != nil {
		t.Fatal(err)
	}
	for _, write := range []bool{true, false} {
		afterLoad(t, f, order{Write: write, Block: smallBlock, Threads: 2, Rate: 1e4, Random: write, Seconds: 60},
			func(c *child, err error) bool {
				if err != nil {
					t.Fatalf("write %v: %v", write, err)
				}
				return c.requests > 0
			})
	}
}

// afterLoad loads a file and ends that, for a longer time until the result is as a test wants it: on a busy machine a
// load begins late.
func afterLoad(t *testing.T, f *os.File, o order, good func(c *child, err error) bool) {
	t.Helper()
	for lasts := 200 * time.Millisecond; lasts < time.Minute; lasts *= 2 {
		c, err := startChild(t.Context(), nil, f, o)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(lasts)
		if good(c, c.end()) {
			return
		}
	}
	t.Errorf("%+v: not as wanted", o)
}

// TestChildFails: an error of the load is reported.
func TestChildFails(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "load"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reads := order{Block: smallBlock, Threads: 2, Rate: 1e4, Seconds: 60}
	afterLoad(t, f, reads, func(_ *child, err error) bool {
		return err != nil && strings.Contains(err.Error(), "the disk cannot be loaded")
	})
}

// TestChildEnds: a load ends after its time even if its parent forgets it, and with its parent's end of
// the pipe, which the kernel closes when the parent is killed.
func TestChildEnds(t *testing.T) {
	ended := func(c *child, what string) {
		t.Helper()
		select {
		case err := <-c.exited:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("the load outlives %s", what)
			_ = c.cmd.Process.Signal(syscall.SIGKILL)
		}
	}
	c, err := startChild(t.Context(), nil, nil, order{Spin: 1, Seconds: 0.2})
	if err != nil {
		t.Fatal(err)
	}
	ended(c, "its time")
	if c, err = startChild(t.Context(), nil, nil, order{Spin: 1, Seconds: 3600}); err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	ended(c, "its parent")
}

// TestOpenLoadFile: the file of a load has no name, so nothing is left of it.
func TestOpenLoadFile(t *testing.T) {
	dir := t.TempDir()
	f, err := openLoadFile(t.Context(), dir)
	if err != nil {
		t.Skip(err) // a file system without O_DIRECT
	}
	defer f.Close()
	if all, _ := os.ReadDir(dir); len(all) != 0 {
		t.Errorf("%v", all)
	}
	if _, err := openLoadFile(t.Context(), filepath.Join(dir, "none")); err == nil {
		t.Error("a missing directory has a file")
	}
}

// TestNoDiskLoad: where one limit of requests always ends them before the other, the other cannot be told.
func TestNoDiskLoad(t *testing.T) {
	for _, l := range []Limit{
		{Kind: Read, Value: 100e6, other: 10},
		{Kind: ReadIOPS, Value: 1000, other: 1e6},
	} {
		if _, err := newDiskLoad(t.Context(), t.TempDir(), l, 1); err == nil ||
			!strings.Contains(err.Error(), "ends its requests") {
			t.Errorf("%s: %v", l.Kind, err)
		}
	}
}

// TestUnits: requests are within their bounds, and enough pass to count whole ones.
func TestUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(1, 1e12).Draw(t, "rate")
		seconds := rapid.Float64Range(0.2, 600).Draw(t, "seconds")
		n := unitsOf(rate, seconds, leastFrame, maxBlock)
		if n < leastFrame || n > maxBlock {
			t.Fatalf("%d bytes", n)
		}
		if n > leastFrame && rate*seconds/float64(n) < 299 {
			t.Fatalf("only %v of %d bytes", rate*seconds/float64(n), n)
		}
	})
}

// TestProcessorTime: the used time of the host is a part of the whole.
func TestProcessorTime(t *testing.T) {
	if used, total := processorTime(); total == 0 || used > total {
		t.Errorf("%d of %d", used, total)
	}
}
