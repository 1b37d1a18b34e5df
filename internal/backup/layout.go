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

// A Layout says where a restore stages a site on this host, and where the staged files belong.
type Layout struct {
	Dirs    host.Dirs
	Key     string // the key of the restored site on this host
	SiteDir string // where the site directory will be
	Twin    bool   // it is restored as a twin: volumes are in the host's state directory
}

// StagingDir returns the staging directory of a restore. While it exists, a restore is in progress or
// was interrupted.
func StagingDir(dirs host.Dirs, key string) string { return filepath.Join(dirs.Site(key), "restore") }

func (l Layout) staged(parts ...string) string {
	return filepath.Join(append([]string{StagingDir(l.Dirs, l.Key)}, parts...)...)
}

func (l Layout) private(id int) string { return l.staged("private", strconv.Itoa(id)) }

// places returns where a tree is staged, and where it is then moved. Private layers have no second
// path: they are moved when their nodes have been created.
func (l Layout) places(t *vault.Tree) (at, to string) {
	switch t.Kind {
	case vault.PrivateTree:
		return l.private(t.ID), ""
	case vault.SiteTree:
		if tree.Exists(l.SiteDir) && !empty(l.SiteDir) {
			return "", "" // it has the same files
		}
		return stagingPath(l.SiteDir), l.SiteDir
	case vault.ExtendedTree:
		return "", "" // SiteDir stages it
	case vault.VolumeTree:
		if to = l.volume(t); t.Path != "" && !l.Twin {
			return stagingPath(to), to
		}
	case vault.ReleaseTree:
		to = l.Dirs.Release(l.Key, t.Number)
	case vault.SnapshotTree:
		if l.Twin {
			return "", "" // they contain paths of the original
		}
	} // a snapshot stays there until PlaceSnapshots
	return l.staged("trees", t.Name), to
}

// volume returns the path of a volume on this host.
func (l Layout) volume(t *vault.Tree) string {
	m := spec.Mount{Volume: t.Volume, Source: t.Path, Shared: t.Node == ""}
	if l.Twin {
		m.Source = ""
	}
	return volume.Path(l.Dirs, l.Key, t.Node, m)
}

// stagingPath returns a staging path on the same file system as path, from which a rename moves it to
// path.
func stagingPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-restore")
}

// Clear removes what an interrupted restore of a site has staged and not moved to its place.
func (l Layout) Clear() error {
	at := l.staged()
	p, err := readProgress(l.Dirs, l.Key)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, m := range p.Moves {
		if m.From == stagingPath(m.To) || filepath.Dir(m.From) == at || within(m.From, at) {
			err = errors.Join(err, tree.RemoveAll(m.From))
		}
	}
	if err != nil { // keep the record of what is left
		return err
	}
	return tree.RemoveAll(at)
}
