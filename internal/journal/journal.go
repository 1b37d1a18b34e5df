// Package journal is the append-only record, on each host, of what was done to a site there: who, when, what, result.
package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// An Entry is one line of a journal. Kinds of entries: "begin" and "end" of a run, "step" for each step of it.
type Entry struct {
	Time    time.Time `json:"time"`
	Run     string    `json:"run"` // the same for all entries of a run
	Kind    string    `json:"kind"`
	Who     string    `json:"who,omitempty"`     // begin
	Command string    `json:"command,omitempty"` // begin
	Step    string    `json:"step,omitempty"`    // step: what was done and why
	Result  string    `json:"result,omitempty"`  // step, end: "done" or the error
	Seconds float64   `json:"seconds,omitempty"`
}

// A Journal is open for writing. Every entry is one write, so that several writers do not mix their lines.
type Journal struct{ file *os.File }

// Open opens the journal at path for writing.
func Open(path string) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	return &Journal{f}, err
}

// Add appends an entry.
func (j *Journal) Add(e Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(text, '\n'))
	return err
}

// Close closes the journal, once it is on disk.
func (j *Journal) Close() error { return errors.Join(j.file.Sync(), j.file.Close()) }

// Read gives all entries of the journal at path, the oldest first. A line that a power cut left half written is passed over.
func Read(path string) ([]Entry, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Entry
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			all = append(all, e)
		}
	}
	return all, lines.Err()
}
