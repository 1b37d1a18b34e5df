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

// DiskDir is the directory of disk files in the private layer, so that they are copied, moved and
// removed with it. An empty directory is mounted over it in the guest, which has the private layer
// as its root.
const DiskDir = ".orrery-disks"

// SeenFile stores what a guest has been shown of its private layer.
const SeenFile = "seen.json"

// Disks returns the directory of the machine's disk files.
func (m Machine) Disks() string { return filepath.Join(m.Private(), DiskDir) }

// Disk returns one of the machine's disks.
func (m Machine) Disk(d site.Drive) *disk.Disk { return disk.Of(m.Ref.Name, m.Disks(), d) }

// ProvideDisks creates missing disks of a machine that is about to start, and checks all of them.
func (m Machine) ProvideDisks(ctx context.Context, r *nodedir.Record) error {
	if err := m.CreateDiskDir(); err != nil {
		return err
	}
	for _, drive := range r.VM.Drives() {
		if err := m.ProvideDisk(ctx, r, drive); err != nil {
			return err
		}
	}
	return nil
}

// ProvideDisk creates a disk if it is missing, and checks it.
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
	cell, err := m.Sandbox(r)
	if err != nil {
		return err
	}
	return d.Check(ctx, cell, m.Group())
}

// Sandbox returns the confinement of the machine's programs.
func (m Machine) Sandbox(r *nodedir.Record) (confine.Sandbox, error) {
	ids := r.IDs()
	at := m.File("cell")
	return confine.Sandbox{At: at, User: ids.First + ids.Size - 1}, os.MkdirAll(at, 0o700)
}

// CreateDiskDir creates the directory DiskDir. It returns a problem if a guest that ran before its machine
// had disks has put something else there.
func (m Machine) CreateDiskDir() error {
	root, err := tree.Open(m.Private())
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.MkdirAllNoFollow(DiskDir, 0, 0)
	if err != nil {
		return problem.New(problem.Failed, "node %s: the directory for its disks cannot be made", m.Ref.Name).At(m.Disks()).
			Because(err).Try("remove the node's own files at /%s", DiskDir)
	}
	defer dir.Close()
	return dir.Chmod(0o700)
}

// DiskDirCover returns the mount that hides DiskDir from the guest.
func (m Machine) DiskDirCover() (rootfs.Bind, error) {
	empty := m.File("empty")
	return rootfs.Bind{Source: empty, Target: "/" + DiskDir, ReadOnly: true}, os.MkdirAll(empty, 0o755)
}

// DiskProblem returns a problem with a disk.
func (m Machine) DiskProblem(d site.Drive, what string, err error) *problem.Problem {
	return problem.New(problem.Failed, "node %s: disk %s %s", m.Ref.Name, d.Name, what).At(m.Ref.Site).Because(err)
}

// The limits of a machine's directory of disks: the number of files, and the size of SeenFile,
// which is read into memory.
const (
	maxFiles      = 1000
	maxShownBytes = 128 << 20
)

// CheckReceivedDisks checks the disks in a private layer that was received from another host. Each must be a
// regular file with one link. It removes all other files but SeenFile.
func CheckReceivedDisks(node, layer string) error {
	root, err := tree.Open(layer)
	if err != nil {
		return err
	}
	defer root.Close()
	switch st, err := root.Lstat(DiskDir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return foreignDiskProblem(node, layer, DiskDir)
	}
	names, err := root.Names(DiskDir, maxFiles)
	if err != nil {
		return err
	}
	for _, name := range names {
		at := filepath.Join(DiskDir, name)
		st, err := root.Lstat(at)
		if err != nil {
			return err
		}
		kind := filepath.Ext(name)
		switch {
		case kind != "."+site.QCow2 && kind != "."+site.RawFile && name != SeenFile:
			// The next start creates the marks of disks.
			err = root.RemoveAll(at)
		case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 || name == SeenFile && st.Size > maxShownBytes:
			err = foreignDiskProblem(node, layer, at)
		default:
			err = root.SetOwnerMode(at, 0, 0, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return root.SetOwnerMode(DiskDir, 0, 0, 0o700)
}

func foreignDiskProblem(node, layer, what string) error {
	return problem.New(problem.Failed, "node %s: the file received from the other host is not a disk", node).
		At(filepath.Join(layer, what)).Try("check whether that host is compromised; the node still exists there")
}
