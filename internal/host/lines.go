package host

import "bytes"

// Lines passes on what is written to it, line by line, each with its end. A line of more than most bytes is
// passed on in pieces, each of which says so, because a line without an end would be waited for forever.
type Lines struct {
	most  int
	to    func(line []byte) error
	begun []byte
}

// NewLines returns Lines that pass each line to a function, which must not keep it.
func NewLines(most int, to func(line []byte) error) *Lines { return &Lines{most: most, to: to} }

// cutMark ends each piece of a line that is too long, but for the last.
const cutMark = " … (the line goes on)\n"

// Write passes on the lines that are whole.
func (l *Lines) Write(p []byte) (int, error) {
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
		if err := l.give(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// End passes on what is left: a line without an end gets one.
func (l *Lines) End() error {
	if len(l.begun) == 0 {
		return nil
	}
	l.begun = append(l.begun, '\n')
	return l.give()
}

func (l *Lines) give() error {
	line := l.begun
	l.begun = l.begun[:0]
	return l.to(line)
}
