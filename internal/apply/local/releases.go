package local

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

func (h *Host) releasesFile() string {
	return filepath.Join(h.Dirs.Site(h.Site.Key()), "releases.json")
}

// ReadReleases reads which releases of the site are live on this host, and which are kept.
func (h *Host) ReadReleases() (observe.Releases, error) {
	var r observe.Releases
	text, err := os.ReadFile(h.releasesFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return r, err
	default:
		if err := json.Unmarshal(text, &r); err != nil {
			return r, problem.New(problem.Failed, "the record of releases cannot be read").At(h.releasesFile()).Because(err).
				Try("put it back from a backup; it says which release of each node is live")
		}
	}
	r.Staged = nil
	entries, err := os.ReadDir(h.Dirs.Releases(h.Site.Key()))
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

// WriteReleases takes down which releases are live, safe against a power cut: it is the one record of it.
func (h *Host) WriteReleases(r observe.Releases) error {
	h.releases.Lock()
	defer h.releases.Unlock()
	r.Staged, h.lives = nil, nil
	return host.WriteJSON(h.releasesFile(), 0o600, r)
}

// commit takes down what a switch has made live. The time of a trial that begins with it begins now, when all of the rest is done.
func (h *Host) commit(r observe.Releases) error {
	if r.Trial != nil && r.Trial.Until.IsZero() {
		now, trial := host.Now(), *r.Trial
		trial.Begin(now, trial.Within)
		r.Trial = &trial
	}
	return h.WriteReleases(r)
}

// dropCopies removes the copies of volumes of nodes that have the volumes now.
func (h *Host) dropCopies() error {
	found, err := nodedir.All(h.Dirs, h.Site.Key())
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
			err = errors.Join(err, volume.Erase(volume.Path(h.Dirs, n.Site, n.Name, m)))
		}
	}
	return err
}

// dropFormer removes copies that a node had before it had the volumes themselves, if a run was killed before it could: they are out of date.
func (h *Host) dropFormer(n *spec.Node) error {
	var err error
	for _, m := range n.Mounts {
		if m.Copy == spec.NoCopy && !m.Shared {
			err = errors.Join(err, volume.Erase(volume.Path(h.Dirs, n.Site, n.Name, m)))
		}
	}
	return err
}

// copied stands for any copy: where one is does not depend on what it began with.
const copied = "any"

// forgetRelease removes what is kept of a release: the site as it was when it was staged, and copies of volumes.
func (h *Host) forgetRelease(number int) error {
	dir := h.Dirs.Release(h.Site.Key(), number)
	copies := h.Dirs.Copies(h.Site.Key(), number)
	volumes, _ := filepath.Glob(filepath.Join(copies, "*", "*"))
	var err error
	for _, path := range volumes {
		err = errors.Join(err, volume.Erase(path))
	}
	return errors.Join(err, tree.RemoveAll(dir))
}
