// Package volume stores the persistent data of nodes: directories that outlive the nodes. They are
// on the host or on an NFS export.
package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// An OwnerLookup returns the numeric ids of a "user:group" of a node.
type OwnerLookup func(owner string) (uid, gid int, err error)

// A NodeRoot is the root of a node before it starts.
type NodeRoot struct {
	Owner OwnerLookup
	// WithLayers calls do with a path of the host at which the node's layers have a directory.
	WithLayers func(path string, do func(dir string) error) error
}

// Path returns the directory on the host that contains a node's volume.
func Path(dirs host.Dirs, site, node string, m spec.Mount) string {
	var root string
	if m.Copy != "" {
		root = among(filepath.Join(dirs.VolumeCopies(site, m.Release), m.Volume), m)
	} else {
		root = sourceOf(m).Root(dirs, site, m)
	}
	if m.Shared {
		return root
	}
	return filepath.Join(root, node)
}

// SharedDir is the directory of a volume that all nodes share, beside the directories of single nodes.
// No node can have this name.
const SharedDir = "@all"

// Provide makes the directory of a volume with its owner and mode, or with what the node's layers have, if it
// does not exist. It mounts the export of the volume first.
func Provide(ctx context.Context, dirs host.Dirs, site, node string, m spec.Mount, root NodeRoot) error {
	if m.Copy == "" {
		if err := sourceOf(m).Mount(dirs, m); err != nil {
			return err
		}
	}
	path := Path(dirs, site, node, m)
	_, err, _ := copyGroup.Do(path, func() (any, error) { return nil, provide(ctx, path, node, m, root) })
	return err
}

func provide(ctx context.Context, path, node string, m spec.Mount, root NodeRoot) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	// The owners in a volume are those of the node. A user of the host with the same number must
	// not have access.
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if m.Layer {
		return provideFilled(ctx, path, node, m, root)
	}
	uid, gid, err := root.Owner(m.Owner)
	if err != nil {
		return problem.New(problem.Mistake, "volume %s: its owner %q is unknown on node %s", m.Volume, m.Owner, node).
			Because(err).
			Try("create the user in a package or build step of the role")
	}
	// The directory is made under another name, so that an existing one always has its owner.
	fresh := tempName(path)
	if err := Erase(fresh); err != nil {
		return err
	}
	if err := makeDirectory(fresh, filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Chown(fresh, uid, gid); err != nil {
		return err
	}
	if err := os.Chmod(fresh, os.FileMode(m.Mode)); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// List returns the volumes of a site that are stored with the host's state.
func List(dirs host.Dirs, site string) ([]observe.Volume, error) {
	root := dirs.Volumes(site)
	names, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []observe.Volume
	for _, name := range names {
		nodes, err := os.ReadDir(filepath.Join(root, name.Name()))
		if err != nil {
			return nil, err
		}
		for _, node := range nodes {
			if strings.HasPrefix(node.Name(), ".") {
				continue // incomplete, left by a run that was killed
			}
			v := observe.Volume{Name: name.Name(), Node: node.Name(), Path: filepath.Join(root, name.Name(), node.Name())}
			if v.Node == SharedDir {
				v.Node = ""
			}
			all = append(all, v)
		}
	}
	return all, nil
}
