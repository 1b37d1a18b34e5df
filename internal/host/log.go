package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// A Log is a file that keeps what commands print: all of it up to a size, and then only the end. So
// a command that prints without end does not fill the disk.
type Log struct {
	file  *os.File
	mutex sync.Mutex
	room  int
	lost  int
	end   TailBuffer
}

// maxLogBytes limits what is written to a log from when it is opened until it is closed.
const maxLogBytes = 32 << 20

// OpenLog opens a log for appending. It first renames a log that has become long to PATH.old.
func OpenLog(path string, mode os.FileMode) (*Log, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() >= maxLogBytes {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, mode)
	if err != nil {
		return nil, err
	}
	return &Log{file: f, room: maxLogBytes}, nil
}

// Name returns the path of the log.
func (l *Log) Name() string { return l.file.Name() }

// Write writes p to the file, as far as there is room, and the rest to a buffer that keeps its end.
func (l *Log) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fits := p[:min(l.room, len(p))]
	l.room -= len(fits)
	if rest := p[len(fits):]; len(rest) > 0 {
		l.lost += len(rest)
		_, _ = l.end.Write(rest) // to memory
	}
	if _, err := l.file.Write(fits); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes the end of the output for which there was no room, and closes the file.
func (l *Log) Close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var err error
	if l.lost > 0 {
		end := l.end.String()
		_, err = fmt.Fprintf(l.file, "\n… %d bytes are left out …\n%s", l.lost-len(end), end)
	}
	return errors.Join(err, l.file.Close())
}
