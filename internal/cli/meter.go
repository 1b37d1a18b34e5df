package cli

import (
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"orrery/internal/visible"
)

// A meter shows how many bytes have gone by, on a terminal; nothing otherwise.
type meter struct {
	all *mpb.Progress
	bar *mpb.Bar
}

func newMeter(w io.Writer, what string) *meter {
	f, ok := screen(w)
	if !ok {
		return &meter{}
	}
	all := mpb.New(mpb.WithOutput(f), mpb.WithWidth(20), mpb.WithRefreshRate(100*time.Millisecond))
	bar := all.New(0, mpb.SpinnerStyle(), mpb.PrependDecorators(decor.Name(visible.Line(what)+" ")),
		mpb.AppendDecorators(decor.CurrentKibiByte("% .1f "), decor.AverageSpeed(decor.SizeB1024(0), "% .1f "), decor.Elapsed(decor.ET_STYLE_GO)))
	return &meter{all, bar}
}

func (m *meter) add(bytes int64) {
	if m.bar != nil {
		m.bar.IncrInt64(bytes)
	}
}

func (m *meter) close() {
	if m.bar != nil {
		m.bar.SetTotal(-1, true)
		m.all.Wait()
	}
}
