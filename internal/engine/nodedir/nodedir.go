// Package nodedir keeps what a host has of each node: node.json, which says what it was made from and how far it has come, its private
// layer, and what else its engine keeps there. The records of a host are the truth about it; there is no other database.
package nodedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/host"
	"orrery/internal/tree"
)

// A Dir is the directory of a node, which may not be there.
type Dir struct{ path string }

// Of gives the directory of a node of a site.
func Of(dirs host.Dirs, site string, id int) Dir { return Dir{dirs.Node(site, id)} }

// At gives the directory of a node that is, or is being made, at a path.
func At(path string) Dir { return Dir{path} }

// Path says where it is.
func (d Dir) Path() string { return d.path }

// File is a file in it.
func (d Dir) File(name string) string { return filepath.Join(d.path, name) }

// Sweep removes what killed runs left beside the nodes of a site: directories whose names begin with a dot.
func Sweep(dirs host.Dirs, site string) error {
	entries, err := os.ReadDir(dirs.Nodes(site))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			err = errors.Join(err, tree.RemoveAll(filepath.Join(dirs.Nodes(site), e.Name())))
		}
	}
	return err
}
