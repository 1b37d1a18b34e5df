package cli

import (
	"io"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// A meter shows how many bytes have gone by, on a terminal; nothing otherwise.
type meter struct {
	all *mpb.Progress
	bar *mpb.Bar
}

func newMeter(w io.Writer, what string) *meter {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return &meter{}
	}
	all := mpb.New(mpb.WithOutput(f), mpb.WithWidth(20), mpb.WithRefreshRate(100*time.Millisecond))
	bar := all.New(0, mpb.SpinnerStyle(), mpb.PrependDecorators(decor.Name(what+" ")),
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
