package secret

import (
	"bytes"
	"io"
	"sync"
)

// A Writer passes whole lines on with the values of secrets replaced by their names.
type Writer struct {
	keyring *Keyring
	to      io.Writer
	mu      sync.Mutex
	line    bytes.Buffer // begun and not yet ended
}

// NewWriter gives a Writer in front of to.
func (k *Keyring) NewWriter(to io.Writer) *Writer { return &Writer{keyring: k, to: to} }

// Write keeps what does not end a line until the line is whole, so that no secret slips through in two halves.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line.Write(p)
	end := bytes.LastIndexByte(w.line.Bytes(), '\n')
	if end < 0 {
		return len(p), nil
	}
	whole := string(w.line.Next(end + 1))
	_, err := io.WriteString(w.to, w.keyring.Redact(whole))
	return len(p), err
}

// Flush passes on a line that was not ended.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.line.String()
	w.line.Reset()
	_, err := io.WriteString(w.to, w.keyring.Redact(rest))
	return err
}
