package sanitize

import (
	"io"
	"sync"
	"unicode/utf8"
)

// A Writer passes on what is written to it as Text shows it. It may be used by several goroutines at once.
type Writer struct {
	to    io.Writer
	mutex sync.Mutex
	begun []byte // a character of which the rest has not come yet
}

// NewWriter returns a writer that passes on to another.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write passes on p. A character that is cut at the end of p waits for the rest of it.
func (w *Writer) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	whole := append(w.begun, p...)
	end := len(whole) - cut(whole)
	w.begun = append([]byte(nil), whole[end:]...)
	if _, err := io.WriteString(w.to, Text(string(whole[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush passes on the beginning of a character of which no rest has come.
func (w *Writer) Flush() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	_, err := io.WriteString(w.to, Text(string(w.begun)))
	w.begun = nil
	return err
}

// Raw returns what the writer passes on to, for sequences of our own. What has been written before
// comes before.
func (w *Writer) Raw() io.Writer {
	_ = w.Flush() // whoever writes next meets the same error
	return w.to
}

// cut returns the length of a character at the end of p that is not whole.
func cut(p []byte) int {
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
