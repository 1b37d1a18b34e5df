package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/image/foreign"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// diskName is the only file in the tree of a layer that is a disk image. Its format is detected
// from its content, which was checked before the import.
const diskName = "disk"

// OpenDisk opens the disk image of a layer for reading and returns its format.
func (s *Store) OpenDisk(digest string) (*os.File, *foreign.Disk, error) {
	root, err := tree.Open(s.Tree(digest))
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(diskName)
	if err != nil {
		return nil, nil, err
	}
	info, err := inspect("", f)
	if err != nil {
		return nil, nil, errors.Join(problem.New(problem.Failed,
			"the disk image in the store is damaged").At(f.Name()).Because(err).
			Try("`orrery image verify` shows more; remove the layer, and orrery up copies the image again"), f.Close())
	}
	return f, info, nil
}

// copyDisk copies a disk image unchanged into the staging directory of its layer.
func (g *staging) copyDisk(ctx context.Context, from string) error {
	in, err := foreign.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(in.Fd()), &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if allocated := st.Blocks * 512; allocated > g.store.disk.importSpace() {
		return g.store.disk.fullProblem(uint64(allocated) + minBaseSpace/2)
	}
	at := filepath.Join(g.dir, "tree")
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(at, diskName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if tree.Reflink(int(out.Fd()), int(in.Fd())) != nil {
		if err := tree.CopyContent(ctx, int(out.Fd()), int(in.Fd()), &st, func(int64) {}); err != nil {
			return err
		}
	}
	if _, err := inspect(from, out); err != nil { // another process may have written to the original during the copy
		return problem.New(problem.Surprise, "import %s: it changed while it was copied", from).
			Try("run the same command again")
	}
	return out.Close()
}

// inspect returns the format of a disk image. Messages call it name.
func inspect(name string, f *os.File) (*foreign.Disk, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return foreign.Inspect(name, f, info.Size())
}
