package backup

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"orrery/internal/backup/vault"
	"orrery/internal/host"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

// A Layout says where a restore lays down a site on this host, and where what is laid down belongs.
type Layout struct {
	Dirs    host.Dirs
	Key     string // under which the site will be kept here
	SiteDir string // where the site directory will be
	Twin    bool   // it is restored as a twin: volumes are with the host's state
}

// Aside is where a backup is laid down before it is moved to its place. While it is there, a
// restore is under way or was interrupted.
func Aside(dirs host.Dirs, key string) string { return filepath.Join(dirs.Site(key), "restore") }

func (l Layout) aside(parts ...string) string {
	return filepath.Join(append([]string{Aside(l.Dirs, l.Key)}, parts...)...)
}

func (l Layout) private(id int) string { return l.aside("private", strconv.Itoa(id)) }

// places tells where a tree is laid down, and where it is moved to; private layers are moved when
// their nodes have been made.
func (l Layout) places(t *vault.Tree) (at, to string) {
	switch t.Kind {
	case vault.PrivateTree:
		return l.private(t.ID), ""
	case vault.SiteTree:
		if tree.Exists(l.SiteDir) && !empty(l.SiteDir) {
			return "", "" // it is the same
		}
		return beside(l.SiteDir), l.SiteDir
	case vault.VolumeTree:
		if to = l.volume(t); t.Path != "" && !l.Twin {
			return beside(to), to
		}
	case vault.ReleaseTree:
		to = l.Dirs.Release(l.Key, t.Number)
	case vault.SnapshotTree:
		if l.Twin {
			return "", "" // they tell of the original's directories
		}
	} // a snapshot stays there until it is fitted
	return l.aside("trees", t.Name), to
}

// volume is where a volume belongs on this host.
func (l Layout) volume(t *vault.Tree) string {
	m := spec.Mount{Volume: t.Volume, Source: t.Path, Shared: t.Node == ""}
	if l.Twin {
		m.Source = ""
	}
	return volume.Path(l.Dirs, l.Key, t.Node, m)
}

// beside is a name for what will be in a place: on the same file system, so that a rename takes it there.
func beside(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-restore")
}

// Clear removes what an interrupted restore of a site has laid down and not moved to its place.
func (l Layout) Clear() error {
	at := l.aside()
	p, err := readProgress(l.Dirs, l.Key)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, m := range p.Moves {
		if m.From == beside(m.To) || filepath.Dir(m.From) == at || within(m.From, at) {
			err = errors.Join(err, tree.RemoveAll(m.From))
		}
	}
	if err != nil { // the record of what is left stays with it
		return err
	}
	return tree.RemoveAll(at)
}
