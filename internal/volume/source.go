package volume

import (
	"errors"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Source is how a host gets at volumes of one source (site.VolumeSource).
type Source interface {
	// Root returns the directory of the host in which each node has its directory of a volume; of a
	// volume that nodes share, that directory.
	Root(dirs host.Dirs, key string, m spec.Mount) string
	// Mount makes the data reachable there.
	Mount(dirs host.Dirs, m spec.Mount) error
	// Release ends that for data that no node uses any more.
	Release(dirs host.Dirs) error
}

// Sources are all sources, by the keys that site.Sources have.
var Sources = map[string]Source{
	"":     withState{},
	"path": atPath{},
	"nfs":  nfs{},
}

// sourceOf returns the source of a volume; there is one for each that a record can name (TestSourcesMatch).
func sourceOf(m spec.Mount) Source { return Sources[m.From().Key] }

// onHost is of a source whose data is on the host.
type onHost struct{}

func (onHost) Mount(host.Dirs, spec.Mount) error { return nil }

func (onHost) Release(host.Dirs) error { return nil }

type withState struct{ onHost }

func (withState) Root(dirs host.Dirs, key string, m spec.Mount) string {
	return among(filepath.Join(dirs.Volumes(key), m.Volume), m)
}

type atPath struct{ onHost }

func (atPath) Root(_ host.Dirs, _ string, m spec.Mount) string { return m.Source }

// among returns the root of a volume in a directory that has those of single nodes, too.
func among(dir string, m spec.Mount) string {
	if m.Shared {
		return filepath.Join(dir, ForAll)
	}
	return dir
}

// Release unmounts all that no node uses any more; what is in use stays.
func Release(dirs host.Dirs) error {
	var err error
	for _, s := range site.Sources {
		err = errors.Join(err, Sources[s.Key].Release(dirs))
	}
	return err
}
