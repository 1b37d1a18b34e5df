package volume

import (
	"errors"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Source is how a host accesses volumes of one source (site.VolumeSource).
type Source interface {
	// Root returns the directory on the host that contains each node's directory of a volume. For a
	// shared volume, it is the directory of the volume itself.
	Root(dirs host.Dirs, key string, m spec.Mount) string
	// Mount makes the data available at the root.
	Mount(dirs host.Dirs, m spec.Mount) error
	// Release unmounts data that no node uses any more.
	Release(dirs host.Dirs) error
}

// Sources maps the keys of site.VolumeSources to all sources.
var Sources = map[string]Source{
	"":     withState{},
	"path": atPath{},
	"nfs":  nfs{},
}

// sourceOf returns the source of a volume. There is one for each key that a record can contain
// (TestSourcesMatch).
func sourceOf(m spec.Mount) Source { return Sources[m.From().Key] }

// onHost implements Mount and Release for sources whose data is on the host.
type onHost struct{}

func (onHost) Mount(host.Dirs, spec.Mount) error { return nil }

func (onHost) Release(host.Dirs) error { return nil }

type withState struct{ onHost }

func (withState) Root(dirs host.Dirs, key string, m spec.Mount) string {
	return among(filepath.Join(dirs.Volumes(key), m.Volume), m)
}

type atPath struct{ onHost }

func (atPath) Root(_ host.Dirs, _ string, m spec.Mount) string { return m.Source }

// among returns the root of a volume in a directory that also contains the directories of single
// nodes.
func among(dir string, m spec.Mount) string {
	if m.Shared {
		return filepath.Join(dir, SharedDir)
	}
	return dir
}

// Release unmounts everything that no node uses any more. It leaves mounts that are in use.
func Release(dirs host.Dirs) error {
	var err error
	for _, s := range site.VolumeSources {
		err = errors.Join(err, Sources[s.Key].Release(dirs))
	}
	return err
}
