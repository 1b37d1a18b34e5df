package vm

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/disk"
	"orrery/internal/engine/nodedir"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/tree"
)

// Hold is where the files of disks are: in the private layer, so that whatever takes that along
// takes them. The guest, which has the layer as its root, finds an empty directory mounted over it.
const Hold = ".orrery-disks"

// SeenFile is what is kept there of what a guest has been shown of its private layer.
const SeenFile = "seen.json"

// Disks returns where the machine keeps the files of its disks.
func (m Machine) Disks() string { return filepath.Join(m.Private(), Hold) }

// Disk is one of the machine's.
func (m Machine) Disk(d site.Drive) *disk.Disk { return disk.Of(m.Ref.Name, m.Disks(), d) }

// ProvideDisks makes the disks of a machine that is to start, unless they are there, and looks
// whether they are sound.
func (m Machine) ProvideDisks(ctx context.Context, r *nodedir.Record) error {
	if err := m.MakeHold(); err != nil {
		return err
	}
	for _, drive := range r.VM.Drives() {
		if err := m.ProvideDisk(ctx, r, drive); err != nil {
			return err
		}
	}
	return nil
}

// ProvideDisk does so with one.
func (m Machine) ProvideDisk(ctx context.Context, r *nodedir.Record, drive site.Drive) error {
	d := m.Disk(drive)
	var err error
	switch {
	case drive.Name == site.RootDisk:
		err = d.PrepareRoot(ctx, m.Disks())
	case !drive.IsDevice():
		err = d.Provide(ctx, false)
	}
	if err != nil {
		return err
	}
	cell, err := m.Cell(r)
	if err != nil {
		return err
	}
	return d.Check(ctx, cell, m.Group())
}

// Cell is where programs of the machine are.
func (m Machine) Cell(r *nodedir.Record) (confine.Cell, error) {
	ids := r.IDs()
	at := m.File("cell")
	return confine.Cell{At: at, User: ids.First + ids.Size - 1}, os.MkdirAll(at, 0o700)
}

// MakeHold makes the directory. A guest that ran before its machine had disks may have put
// something else there.
func (m Machine) MakeHold() error {
	root, err := tree.Open(m.Private())
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.MakeDown(Hold, 0, 0)
	if err != nil {
		return problem.New(problem.Failed, "node %s: there is no place for its disks", m.Ref.Name).At(m.Disks()).
			Because(err).Try("remove what the node has put at /%s", Hold)
	}
	defer dir.Close()
	return dir.Chmod(0o700)
}

// Cover hides the disks from the guest.
func (m Machine) Cover() (rootfs.Bind, error) {
	empty := m.File("empty")
	return rootfs.Bind{Source: empty, Target: "/" + Hold, ReadOnly: true}, os.MkdirAll(empty, 0o755)
}

// DiskProblem says what went wrong with a disk.
func (m Machine) DiskProblem(d site.Drive, what string, err error) *problem.Problem {
	return problem.New(problem.Failed, "node %s: disk %s %s", m.Ref.Name, d.Name, what).At(m.Ref.Site).Because(err)
}

// What may be in a machine's directory of disks: files, and bytes of what its guest has been shown,
// which is read as a whole.
const (
	maxFiles      = 1000
	maxShownBytes = 128 << 20
)

// TakeDisks looks at what has come of a machine's disks from another host, in a private layer:
// files that are nobody else's, and nothing that leads anywhere. What is no disk, but for what the
// guest has been shown, goes.
func TakeDisks(node, layer string) error {
	root, err := tree.Open(layer)
	if err != nil {
		return err
	}
	defer root.Close()
	switch st, err := root.Lstat(Hold); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return strange(node, layer, Hold)
	}
	names, err := root.Names(Hold, maxFiles)
	if err != nil {
		return err
	}
	for _, name := range names {
		at := filepath.Join(Hold, name)
		st, err := root.Lstat(at)
		if err != nil {
			return err
		}
		kind := filepath.Ext(name)
		switch {
		case kind != "."+site.QCow2 && kind != "."+site.RawFile && name != SeenFile:
			// marks of disks are made at the next start
			err = root.RemoveAll(at)
		case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 || name == SeenFile && st.Size > maxShownBytes:
			err = strange(node, layer, at)
		default:
			err = root.Own(at, 0, 0, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return root.Own(Hold, 0, 0, 0o700)
}

func strange(node, layer, what string) error {
	return problem.New(problem.Failed, "node %s: what has come from the other host as its disk is none", node).
		At(filepath.Join(layer, what)).Try("look at that host: somebody else may have it; the node is still there")
}
