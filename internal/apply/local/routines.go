package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/observe/routine"
	"orrery/internal/problem"
	"orrery/internal/site/check"
)

func (h stateHost) routineFile(name string) string {
	return filepath.Join(h.Dirs.Site(h.Key), "routines", name+".json")
}

// Routine reads how something went that is done for the site at intervals.
func (h stateHost) Routine(_ context.Context, name string) (routine.Record, error) {
	if !check.ValidLabel(name) {
		return routine.Record{}, fmt.Errorf("%q is not the name of a routine", name)
	}
	r, err := host.ReadJSON[routine.Record](h.routineFile(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err != nil:
		return routine.Record{}, problem.New(problem.Failed, "the record of the last %s cannot be read", name).
			At(h.routineFile(name)).Because(err).Try("remove the file")
	}
	return r, nil
}

// SaveRoutine stores that.
func (h stateHost) SaveRoutine(_ context.Context, name string, r routine.Record) error {
	if !check.ValidLabel(name) {
		return fmt.Errorf("%q is not the name of a routine", name)
	}
	return host.WriteJSON(h.routineFile(name), 0o600, r)
}
