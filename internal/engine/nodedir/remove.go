package nodedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/tree"
)

// Remove removes a stopped node, the former node kept beside it, and the host's directory behind
// /etc/orrery. A missing node is no error.
func (n *Nodes) Remove(ref engine.Ref) error {
	d := n.Dir(ref)
	r, _ := d.Read()
	gone := d.sibling("gone")
	if err := os.Rename(d.Path(), gone.Path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r != nil {
		if err := slotsOf(n).free(r); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	etc := n.Dirs.Etc(ref.Site, ref.ID)
	var err error
	for _, dir := range []string{gone.Path(), d.sibling("former").Path(), etc} {
		err = errors.Join(err, tree.RemoveAll(dir))
	}
	_ = os.Remove(filepath.Dir(etc)) // fails unless it was the site's last node
	return err
}

// Sweep removes what killed runs left beside the nodes of a site, and frees the user ids of nodes
// that were never made. It closes directories that an earlier version left open to other users.
func (n *Nodes) Sweep(site string) error {
	found, err := n.Found(site)
	for _, f := range found {
		d := n.Dir(engine.RefOf(&f.Node))
		if info, badly := os.Stat(d.Path()); badly == nil && info.Mode().Perm()&0o007 != 0 {
			err = errors.Join(err, d.restrictAccess(f.Record))
		}
	}
	err = errors.Join(err, sweepSiblings(n.Dirs.Nodes(site)))
	return errors.Join(err, slotsOf(n).sweep(site))
}

// sweepSiblings removes directories whose names begin with a dot.
func sweepSiblings(nodes string) error {
	entries, err := os.ReadDir(nodes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			err = errors.Join(err, tree.RemoveAll(filepath.Join(nodes, e.Name())))
		}
	}
	return err
}
