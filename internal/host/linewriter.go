package host

import "bytes"

// LineWriter is a writer that passes on whole lines, each with its end. It splits a line of more than
// most bytes into marked pieces, because a line may never end.
type LineWriter struct {
	most  int
	to    func(line []byte) error
	begun []byte
}

// NewLineWriter returns Lines that pass each line to a function. The function must not keep the slice.
func NewLineWriter(most int, to func(line []byte) error) *LineWriter {
	return &LineWriter{most: most, to: to}
}

// cutMark is at the end of each piece of a line that is too long, except the last piece.
const cutMark = " … (line continues)\n"

// Write passes on all lines that are complete.
func (l *LineWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		room := l.most - len(l.begun)
		end := bytes.IndexByte(rest[:min(room+1, len(rest))], '\n') + 1
		switch {
		case end > 0:
			l.begun = append(l.begun, rest[:end]...)
		case len(rest) <= room:
			l.begun = append(l.begun, rest...)
			return len(p), nil
		default:
			end = room
			l.begun = append(append(l.begun, rest[:end]...), cutMark...)
		}
		rest = rest[end:]
		if err := l.emit(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Flush passes on the last line, and adds the missing line end.
func (l *LineWriter) Flush() error {
	if len(l.begun) == 0 {
		return nil
	}
	l.begun = append(l.begun, '\n')
	return l.emit()
}

func (l *LineWriter) emit() error {
	line := l.begun
	l.begun = l.begun[:0]
	return l.to(line)
}
