package screen

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"orrery/internal/control"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// A byteMeter shows how many bytes were moved. On a terminal it updates a bar, and otherwise it prints
// a line at intervals.
type byteMeter struct {
	all *mpb.Progress
	bar *mpb.Bar // nil without a terminal

	bytes atomic.Int64
	done  chan struct{} // closed by Close
	ended chan struct{} // closed when no more lines are printed
}

// NewMeter returns a meter for the bytes of what.
func NewMeter(w io.Writer, what string) control.ByteWatcher {
	f, ok := TerminalOf(w)
	if !ok {
		m := &byteMeter{done: make(chan struct{}), ended: make(chan struct{})}
		go m.printLoop(w, what)
		return m
	}
	all, width := newContainer(f, 20)
	bar := all.New(0, mpb.SpinnerStyle(), width, mpb.PrependDecorators(decor.Name(sanitize.Line(what)+" ")),
		mpb.AppendDecorators(decor.CurrentKibiByte("% .1f "), decor.AverageSpeed(decor.SizeB1024(0), "% .1f "),
			decor.Elapsed(decor.ET_STYLE_GO)))
	return &byteMeter{all: all, bar: bar}
}

// printLoop prints a line at intervals.
func (m *byteMeter) printLoop(w io.Writer, what string) {
	defer close(m.ended)
	began, tick := time.Now(), time.NewTicker(reminderInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintf(w, "%s: %s in %s\n", what, humanize.Bytes(m.bytes.Load()), seconds(time.Since(began)))
		case <-m.done:
			return
		}
	}
}

// Add counts bytes.
func (m *byteMeter) Add(bytes int64) {
	if m.bar != nil {
		m.bar.IncrInt64(bytes)
		return
	}
	m.bytes.Add(bytes)
}

// Close ends the display.
func (m *byteMeter) Close() {
	if m.bar == nil {
		close(m.done)
		<-m.ended
		return
	}
	m.bar.SetTotal(-1, true)
	m.all.Wait()
}
