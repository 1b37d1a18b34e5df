package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// A releaseHost has the releases of the site on this host.
type releaseHost struct {
	*SiteState
	lock sync.Mutex // held while the record of live releases is written
}

func (h *releaseHost) file() string { return filepath.Join(h.Dirs.Site(h.Key), "releases.json") }

// Read returns which releases of the site are live on this host, and which are kept.
func (h *releaseHost) Read(context.Context) (observe.Releases, error) {
	r, err := host.ReadJSON[observe.Releases](h.file())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, problem.New(problem.Failed, "the record of releases cannot be read").At(h.file()).Because(err).
			Try("put it back from a backup; it says which release of each node is live")
	}
	r.Staged = nil
	entries, err := os.ReadDir(h.Dirs.Releases(h.Key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			r.Staged = append(r.Staged, n)
		}
	}
	slices.Sort(r.Staged)
	return r, nil
}

// Write records which releases are live. The record survives a power cut, because it is the only
// one.
func (h *releaseHost) Write(_ context.Context, r observe.Releases) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	old, err := host.ReadJSON[observe.Releases](h.file())
	if err != nil {
		old = observe.Releases{} // there is no record, or an unreadable one
	}
	return host.WriteJSON(h.file(), 0o600, startTrial(r.SuccessorOf(old)))
}

// Copy stores the record of another host.
func (h *releaseHost) Copy(_ context.Context, r observe.Releases) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	r.Staged = nil
	return host.WriteJSON(h.file(), 0o600, startTrial(r))
}

// startTrial starts the time of a trial that has not started.
func startTrial(r observe.Releases) observe.Releases {
	if r.Trial != nil && r.Trial.Until.IsZero() {
		trial := *r.Trial
		trial.SetDeadline(host.Now(), trial.Within)
		r.Trial = &trial
	}
	return r
}

// dropCopies removes the copies of volumes of nodes that now have the volumes themselves.
func (h *releaseHost) dropCopies() error {
	found, err := h.Backends.Records.All(h.Key)
	if err != nil {
		return err
	}
	for _, f := range found {
		n := f.Record
		if n.Staged || n.Release == 0 {
			continue
		}
		for _, m := range n.Mounts {
			m.Copy, m.Release = copied, n.Release
			err = errors.Join(err, h.Backends.Volumes.Drop(&n.Node, m))
		}
	}
	return err
}

// copied stands for any kind of copy: the path of a copy does not depend on how it was filled.
const copied = "any"
