package sanitize

import (
	"io"
	"sync"
	"unicode/utf8"
)

// A Writer sanitizes what is written to it by Text. It is safe for concurrent use.
type Writer struct {
	to    io.Writer
	mutex sync.Mutex
	begun []byte // first bytes of an incomplete character
}

// NewWriter returns a Writer that writes to to.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write writes the sanitized text. It buffers an incomplete character at the end of p until the
// rest arrives.
func (w *Writer) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	whole := append(w.begun, p...)
	end := len(whole) - incompleteLen(whole)
	w.begun = append([]byte(nil), whole[end:]...)
	if _, err := io.WriteString(w.to, Text(string(whole[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the bytes of an incomplete character.
func (w *Writer) Flush() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	_, err := io.WriteString(w.to, Text(string(w.begun)))
	w.begun = nil
	return err
}

// Raw returns the underlying writer, for Orrery's own escape sequences. It first flushes what was
// written before.
func (w *Writer) Raw() io.Writer {
	_ = w.Flush() // ignore the error, because the next write returns it again
	return w.to
}

// incompleteLen returns the length of an incomplete character at the end of p.
func incompleteLen(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if b := p[len(p)-n:]; utf8.RuneStart(b[0]) {
			if utf8.FullRune(b) {
				return 0
			}
			return n
		}
	}
	return 0
}
