// Package journal is the append-only record of changes to a site on each host: who, when, what,
// result.
package journal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// An Entry is one line of a journal. Kinds of entries: "begin" and "end" of a run, "step" for each
// step of it, "undo" for each step of the way back from it.
type Entry struct {
	Time    time.Time `json:"time"`
	Run     string    `json:"run"` // the same for all entries of a run
	Kind    string    `json:"kind"`
	Who     string    `json:"who,omitempty"`     // begin
	Command string    `json:"command,omitempty"` // begin
	Step    string    `json:"step,omitempty"`    // step, undo: what was done and why
	Result  string    `json:"result,omitempty"`  // step, undo, end: "done" or the error
	Seconds float64   `json:"seconds,omitempty"`
	// which have this in their journals; it is not in those, but known to who reads several
	Hosts []string `json:"hosts,omitempty"`
}

// A Journal is open for writing. Every entry is one write, so that several writers do not mix their lines.
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
	j.reserve()
	if err := j.mend(); err != nil {
		j.file.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return j, nil
}

func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
}

// room is what a journal has of the disk before it needs it, so that what is done to make room on a
// full disk is on record, too.
const room = 64 << 10

// reserve takes the room, where the file system can.
func (j *Journal) reserve() {
	if info, err := j.file.Stat(); err == nil {
		_ = unix.Fallocate(int(j.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, info.Size(), room)
	}
}

// mend ends a last line that a power cut left half written, so that the next entry does not go with it.
func (j *Journal) mend() error {
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

// Add appends an entry. What is longer than anybody reads is cut: much of it is what programs in
// nodes have said.
func (j *Journal) Add(e Entry) error {
	e.Who, e.Command, e.Step, e.Result = cut(e.Who, 256), cut(e.Command, 4<<10), cut(e.Step, 4<<10), cut(e.Result, 16<<10)
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(text, '\n'))
	return err
}

// Close closes the journal, once it is on disk.
func (j *Journal) Close() error {
	err := j.file.Sync()
	if closing := j.file.Close(); err == nil {
		err = closing
	}
	return err
}
