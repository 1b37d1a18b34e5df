package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"orrery/internal/problem"
)

// lines is a file of JSON lines to append to. Each line is a single write, so a killed run leaves
// at most an incomplete last line.
type lines struct {
	path string
	mu   sync.Mutex
	file *os.File
}

// openLines opens the file for appending, after it has removed an incomplete last line.
func openLines(path string) (*lines, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if err := truncatePartialLine(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &lines{path: path, file: f}, nil
}

// maxLineBytes limits how far from the end of the file the last complete line is searched for.
const maxLineBytes = 32 << 20

// truncatePartialLine truncates the file after its last complete line.
func truncatePartialLine(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	const step = 64 << 10
	for from := end; from > 0; {
		if end-from > maxLineBytes {
			return problem.New(problem.Failed, "the last line has more than %d MiB", maxLineBytes>>20).At(f.Name()).
				Try("check that orrery lab run wrote it")
		}
		n := min(from, step)
		part := make([]byte, n)
		if _, err := f.ReadAt(part, from-n); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			if whole := from - n + int64(i) + 1; whole < end {
				return f.Truncate(whole)
			}
			return nil
		}
		from -= n
	}
	return f.Truncate(0)
}

func (l *lines) add(x any) error {
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.file.Write(append(text, '\n'))
	return err
}

func (l *lines) sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Sync()
}

// close syncs and closes the file. A nil file was never opened.
func (l *lines) close() error {
	if l == nil {
		return nil
	}
	err := l.sync()
	return errors.Join(err, l.file.Close())
}
