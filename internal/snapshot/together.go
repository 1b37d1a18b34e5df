package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/text/pattern"
)

// A Barrier keeps the hosts that take a snapshot together in step. Each has its own part of it.
type Barrier interface {
	// Copied reports that the first copy is complete, and returns the moment at which to freeze the
	// nodes.
	Copied(ctx context.Context) (at time.Time, err error)
	// Stood reports that the nodes of this host are frozen, and waits until those of all hosts are.
	Stood(ctx context.Context, p engine.Pause) error
	// Went reports that the nodes run again, and returns the values for all hosts once they are
	// known.
	Went(ctx context.Context, p engine.Pause) (All, error)
}

// All has the values of a snapshot for all hosts.
type All struct {
	Time        time.Time // when the nodes of all hosts were frozen
	Pause, Skew float64   // seconds, as in a Snapshot
	Hosts       []string  // hosts that have a part of it
}

// A part is ready before it is stored. Hosts may store their parts only when the parts of all hosts
// are ready. After an interruption, the next run stores the remaining parts of a snapshot if one
// host has stored its part, and removes all others.
const readySuffix = "-ready"

func ready(dirs host.Dirs, key, id string) string {
	return filepath.Join(dirs.Snapshots(key), "."+id+readySuffix)
}

// ListPrepared returns the ids of the snapshots of which this host has a ready part.
func ListPrepared(dirs host.Dirs, key string) (ids []string, err error) {
	entries, err := os.ReadDir(dirs.Snapshots(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		id, hidden := strings.CutPrefix(e.Name(), ".")
		if id, ok := strings.CutSuffix(id, readySuffix); hidden && ok {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// KeepReady stores a part that is ready. It leaves an already stored part unchanged.
func KeepReady(dirs host.Dirs, key, id string) error {
	if !ValidID(id) {
		return absent(key, id)
	}
	err := os.Rename(ready(dirs, key, id), filepath.Join(dirs.Snapshots(key), id))
	if errors.Is(err, fs.ErrNotExist) {
		_, err = Open(dirs, key, id)
	}
	return err
}

// RemoveReady removes a part that is ready and was not stored.
func RemoveReady(dirs host.Dirs, key, id string) error {
	if !ValidID(id) {
		return absent(key, id)
	}
	gone := filepath.Join(dirs.Snapshots(key), "."+id+"-gone")
	if err := os.Rename(ready(dirs, key, id), gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return erase(gone)
}

var validID = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// ValidID reports whether id is a valid snapshot id.
func ValidID(id string) bool { return validID().MatchString(id) }
