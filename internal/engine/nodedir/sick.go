package nodedir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"orrery/internal/observe"
	"orrery/internal/tree/rawfile"
)

// sickFile says why a node was not healthy when it was last looked into. It is no part of the
// record: looking needs no lock, and must not undo what a run records at the same time.
const sickFile = "sick.json"

// KeepSick keeps what a look into the node has found of its health, or forgets what was found
// before if s is nil.
func (d Dir) KeepSick(s *observe.Sickness) error {
	if s == nil {
		if err := os.Remove(d.File(sickFile)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return d.write(sickFile, s)
}

// sick returns what a look into the node has found, or nil if its health was proven since. Times
// are not compared by which is later, because the clock may have been ahead for one of them.
func (d Dir) sick(proven time.Time) *observe.Sickness {
	text, err := rawfile.ReadFile(d.File(sickFile))
	if err != nil {
		return nil
	}
	s := &observe.Sickness{}
	if json.Unmarshal(text, s) != nil || !s.Proven.Equal(proven) {
		return nil
	}
	return s
}
