package secret

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// A Writer passes whole lines on with the values of secrets replaced by their names.
type Writer struct {
	keyring *Keyring
	to      io.Writer
	mu      sync.Mutex
	line    bytes.Buffer // begun and not yet ended
	lost    int          // how much of a line was left out that is too long, and has not yet ended
}

// longestLine is how much of a line is passed on. It has to be held until it is whole, and what a
// node prints may never be.
const longestLine = 1 << 20

// NewWriter returns a Writer in front of to.
func (k *Keyring) NewWriter(to io.Writer) *Writer { return &Writer{keyring: k, to: to} }

// Write keeps what does not end a line until the line is whole, so that no secret slips through in two halves.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := p
	if w.lost > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			w.lost += len(p)
			return len(p), nil
		}
		w.lost += end
		if err := w.tellLost(); err != nil {
			return 0, err
		}
		rest = p[end+1:]
	}
	w.line.Write(rest)
	if end := bytes.LastIndexByte(w.line.Bytes(), '\n') + 1; end > 0 {
		if err := w.pass(string(w.line.Next(end))); err != nil {
			return 0, err
		}
	}
	if w.line.Len() > longestLine {
		return len(p), w.cut()
	}
	return len(p), nil
}

// cut passes on the beginning of a line, and leaves the rest of it out. What may be the beginning
// of a secret goes with the rest.
func (w *Writer) cut() error {
	text := w.keyring.Redact(w.line.String())
	w.line.Reset()
	w.lost = w.keyring.maxLen()
	_, err := io.WriteString(w.to, text[:max(0, len(text)-w.lost)])
	return err
}

func (w *Writer) tellLost() error {
	_, err := fmt.Fprintf(w.to, " … (%d bytes of this line left out)\n", w.lost)
	w.lost = 0
	return err
}

func (w *Writer) pass(text string) error {
	_, err := io.WriteString(w.to, w.keyring.Redact(text))
	return err
}

// Flush passes on a line that was not ended.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost > 0 {
		return w.tellLost()
	}
	rest := w.line.String()
	w.line.Reset()
	return w.pass(rest)
}
