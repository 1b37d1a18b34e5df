package filling

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/twins"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// Tree is the name of the only tree that is received for a volume.
const Tree = "volume"

// Receive stores what arrives over a stream (package treesync) as a volume of a twin's node on this
// machine. The twin must not have the volume yet. The volume appears atomically.
func Receive(dirs host.Dirs, key string, d apply.Directory, way io.ReadWriter) error {
	to, err := volumePath(dirs, key, d)
	if err != nil {
		return err
	}
	store := treesync.Receiver{Dir: filepath.Join(dirs.Arrivals(key), Tree)}
	defer store.Remove() //nolint:errcheck // it goes with the twin at the latest
	if err := store.Receive(way, treesync.State{Name: d.Node + "/" + d.Mount.Volume},
		func(name string) bool { return name == Tree }); err != nil {
		return err
	}
	from := store.Tree(Tree)
	if state, err := store.Read(); err != nil || !state.Whole || state.Sum == "" || !tree.Exists(from) {
		return problem.New(problem.Failed, "volume %s of node %s: data incomplete", d.Mount.Volume, d.Node).
			Because(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// volumePath returns the path of a received volume. The volume must belong to one node of the twin,
// and the twin must still be waiting for its program to fill the volumes.
func volumePath(dirs host.Dirs, key string, d apply.Directory) (string, error) {
	r, err := twins.Read(dirs, key)
	if err != nil {
		return "", fmt.Errorf("twin %s has no record: %w", key, err)
	}
	if r.Key() != key || r.Filled || r.Volumes == site.CopyEmpty || r.Volumes == site.CopySnapshot {
		return "", fmt.Errorf("the record of twin %s declares no program that fills its volumes", key)
	}
	m := d.Mount
	if !check.ValidLabel(d.Node) || !check.ValidFileName(m.Volume) || d.Path != "" || !m.From().WithState ||
		m.Copy != "" || m.Shared {
		return "", fmt.Errorf("%q of node %q is not a private volume of a node of a twin", m.Volume, d.Node)
	}
	to := d.At(dirs, key)
	if tree.Exists(to) {
		return "", problem.New(problem.Surprise, "volume %s of node %s already exists", m.Volume, d.Node).At(to).
			Try("orrery twin destroy %s, and create it again", r.Options.Name)
	}
	return to, nil
}
