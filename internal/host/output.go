package host

import (
	"bytes"
	"context"
	"fmt"
)

// Output runs a command and returns what it prints. A command that prints more than most bytes is
// killed, and Output returns an OutputLimitError. So a node cannot fill the host's memory.
func Output(ctx context.Context, r Runner, c Command, most int) ([]byte, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := &cappedBuffer{most: most, full: end}
	c.Stdout = w
	err := r.Run(ctx, c)
	if err == nil {
		err = w.err
	}
	return w.text.Bytes(), err
}

// An OutputLimitError is the error for a command that prints more than Limit bytes.
type OutputLimitError struct{ Limit int }

func (e *OutputLimitError) Error() string { return "it printed more than " + formatSize(e.Limit) }

// cappedBuffer keeps all that is written to it, up to most bytes.
type cappedBuffer struct {
	most int
	full context.CancelCauseFunc
	text bytes.Buffer
	err  error
}

func (w *cappedBuffer) Write(p []byte) (int, error) {
	if w.text.Len()+len(p) > w.most {
		w.err = &OutputLimitError{w.most}
		w.full(w.err)
		return 0, w.err
	}
	return w.text.Write(p)
}

func formatSize(bytes int) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}
