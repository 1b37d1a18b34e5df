// Package journal is the append-only record of changes to a site on each host.
//
// An entry contains the time, the user, the change and its result.
package journal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// An Entry is one line of a journal. The kinds of entries are "begin" and "end" of a run, "step"
// for each step of it, and "undo" for each step that reverts one.
type Entry struct {
	Time    time.Time `json:"time"`
	Run     string    `json:"run"` // the same for all entries of a run
	Kind    string    `json:"kind"`
	Who     string    `json:"who,omitempty"`     // begin
	Command string    `json:"command,omitempty"` // begin
	Step    string    `json:"step,omitempty"`    // step, undo: what was done and why
	Result  string    `json:"result,omitempty"`  // step, undo, end: "done" or the error
	Seconds float64   `json:"seconds,omitempty"`
	// of a begin whose run has no end: Running or Killed. Set only by Read and Merge, and not stored
	State string `json:"state,omitempty"`
	// the hosts whose journals contain this entry: set only by Merge, and not stored
	Hosts []string `json:"hosts,omitempty"`
}

// A Journal is a journal open for writing. Every entry is one write, so that several writers do not
// mix their lines.
type Journal struct{ file *os.File }

// Open opens the journal at path for writing.
func Open(path string) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	j := &Journal{f}
	if err := j.rotate(path); err != nil {
		j.file.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	j.preallocate()
	if err := j.terminateLastLine(); err != nil {
		j.file.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return j, nil
}

func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
}

// preallocatedBytes is the disk space that a journal allocates in advance. So it can also record
// what is done on a full disk to make room.
const preallocatedBytes = 64 << 10

// preallocate allocates the space, if the file system supports that.
func (j *Journal) preallocate() {
	if info, err := j.file.Stat(); err == nil {
		_ = unix.Fallocate(int(j.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, info.Size(), preallocatedBytes)
	}
}

// terminateLastLine ends a last line that a power cut has truncated, so that the next entry is not
// lost with it.
func (j *Journal) terminateLastLine() error {
	info, err := j.file.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := j.file.ReadAt(last, info.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = j.file.Write([]byte{'\n'})
	return err
}

// Add appends an entry. It shortens long texts, most of which are the output of programs in nodes.
func (j *Journal) Add(e Entry) error {
	e.Who, e.Command, e.Step, e.Result = abbreviate(e.Who, 256), abbreviate(e.Command, 4<<10), abbreviate(e.Step, 4<<10),
		abbreviate(e.Result, 16<<10)
	e.State = ""
	if e.Kind == "begin" {
		j.markAlive(e.Run)
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(text, '\n'))
	return err
}

// Close syncs the journal to disk and closes it.
func (j *Journal) Close() error {
	err := j.file.Sync()
	if closing := j.file.Close(); err == nil {
		err = closing
	}
	return err
}
