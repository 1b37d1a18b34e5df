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

// A Pace is that of several hosts that take a snapshot together: each has its own part of it.
type Pace interface {
	// Copied says that all is copied that was there, and returns the moment at which nodes are to stand still.
	Copied(ctx context.Context) (at time.Time, err error)
	// Stood says that the nodes of this host stand still, and waits until those of all hosts do.
	Stood(ctx context.Context, p engine.Pause) error
	// Went says that they go on, and returns how it was on all hosts once that is known.
	Went(ctx context.Context, p engine.Pause) (All, error)
}

// All is what hosts say together of a snapshot.
type All struct {
	Time        time.Time // when the nodes of all hosts stood still
	Pause, Skew float64   // seconds, as in a Snapshot
	Hosts       []string  // that have a part of it
}

// A part is ready before it is kept: only when it is ready on all hosts may any keep it. Whoever
// comes next keeps those of which a host has a part that is kept, and removes others.
const readySuffix = "-ready"

func ready(dirs host.Dirs, key, id string) string {
	return filepath.Join(dirs.Snapshots(key), "."+id+readySuffix)
}

// Ready returns the snapshots of which this host has a part that is ready.
func Ready(dirs host.Dirs, key string) (ids []string, err error) {
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

// KeepReady keeps a part that is ready. One that is kept already stays.
func KeepReady(dirs host.Dirs, key, id string) error {
	if !FitID(id) {
		return absent(key, id)
	}
	err := os.Rename(ready(dirs, key, id), filepath.Join(dirs.Snapshots(key), id))
	if errors.Is(err, fs.ErrNotExist) {
		_, err = Open(dirs, key, id)
	}
	return err
}

// RemoveReady removes a part that is ready, and was not kept.
func RemoveReady(dirs host.Dirs, key, id string) error {
	if !FitID(id) {
		return absent(key, id)
	}
	gone := filepath.Join(dirs.Snapshots(key), "."+id+"-gone")
	if err := os.Rename(ready(dirs, key, id), gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return erase(gone)
}

var fitID = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// FitID reports whether a name may be that of a snapshot.
func FitID(id string) bool { return fitID().MatchString(id) }
