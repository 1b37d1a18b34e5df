package secret

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// A Writer writes whole lines to another writer, with the values of secrets replaced by their
// names.
type Writer struct {
	keyring *Keyring
	to      io.Writer
	mu      sync.Mutex
	line    bytes.Buffer // incomplete line
	lost    int          // bytes left out of the current line because it is too long, or 0
}

// maxLineBytes is the maximum number of bytes of a line that are written. A Writer buffers a line
// until it is complete, and a node may print a line that never ends.
const maxLineBytes = 1 << 20

// NewWriter returns a Writer that writes to to.
func (k *Keyring) NewWriter(to io.Writer) *Writer { return &Writer{keyring: k, to: to} }

// Write buffers an incomplete line, so that no secret is missed because it arrives in two parts.
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
		if err := w.writeLostNote(); err != nil {
			return 0, err
		}
		rest = p[end+1:]
	}
	w.line.Write(rest)
	if end := bytes.LastIndexByte(w.line.Bytes(), '\n') + 1; end > 0 {
		if err := w.writeRedacted(string(w.line.Next(end))); err != nil {
			return 0, err
		}
	}
	if w.line.Len() > maxLineBytes {
		return len(p), w.truncateLine()
	}
	return len(p), nil
}

// truncateLine writes the beginning of a line and leaves out the rest. It also leaves out the end of the
// beginning, which may contain the start of a secret.
func (w *Writer) truncateLine() error {
	text := w.keyring.Redact(w.line.String())
	w.line.Reset()
	w.lost = w.keyring.maxLen()
	_, err := io.WriteString(w.to, text[:max(0, len(text)-w.lost)])
	return err
}

func (w *Writer) writeLostNote() error {
	_, err := fmt.Fprintf(w.to, " … (%d bytes of this line left out)\n", w.lost)
	w.lost = 0
	return err
}

func (w *Writer) writeRedacted(text string) error {
	_, err := io.WriteString(w.to, w.keyring.Redact(text))
	return err
}

// Flush writes an incomplete line.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost > 0 {
		return w.writeLostNote()
	}
	rest := w.line.String()
	w.line.Reset()
	return w.writeRedacted(rest)
}
