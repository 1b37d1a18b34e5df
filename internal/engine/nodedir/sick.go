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

// sicknessFile stores why a node was unhealthy when it was last checked. It is separate from the
// record, because a check holds no lock and must not overwrite what a run records at the same time.
const sicknessFile = "sick.json"

// StoreSickness stores the result of a health check, or removes the stored result if s is nil.
func (d Dir) StoreSickness(s *observe.HealthFailure) error {
	if s == nil {
		if err := os.Remove(d.File(sicknessFile)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return d.write(sicknessFile, s)
}

// storedSickness returns the stored result of a health check, or nil if the node's health was proven later.
// It does not compare which time is later, because the clock may have been ahead for one of them.
func (d Dir) storedSickness(proven time.Time) *observe.HealthFailure {
	text, err := rawfile.ReadFile(d.File(sicknessFile))
	if err != nil {
		return nil
	}
	s := &observe.HealthFailure{}
	if json.Unmarshal(text, s) != nil || !s.Proven.Equal(proven) {
		return nil
	}
	return s
}
