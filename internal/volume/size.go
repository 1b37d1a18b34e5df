package volume

import (
	"context"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// A Size is the size of a tree.
type Size struct {
	Apparent int64 `json:"apparent"` // bytes in its files
	Disk     int64 `json:"disk"`     // bytes on disk; blocks shared with clones count for each clone
	Files    int   `json:"files"`
	Partial  bool  `json:"partial,omitempty"` // the tree exceeds the limits and was measured only in part
}

// SizeOf measures a tree. A file with several names counts once.
func SizeOf(ctx context.Context, dir string) (s Size, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return s, err
	}
	root, err := tree.Open(dir)
	if err != nil {
		return s, err
	}
	defer root.Close()
	seen := map[inodeID]bool{}
	err = root.WalkSteps(ctx, bounds, tree.Steps{
		Visit: func(e *tree.Entry) error {
			current := stateOf(&e.Stat)
			if current.hasOtherNames() {
				id := inodeID{current.device, current.inode}
				if seen[id] {
					return nil
				}
				seen[id] = true
			}
			s.Disk += e.Stat.Blocks * 512
			if !current.isDir() && current.mode&unix.S_IFMT != unix.S_IFSOCK {
				s.Apparent += current.size
				s.Files++
			}
			return nil
		},
		Beyond: func(*tree.Entry, error) error {
			s.Partial = true
			return nil
		},
	})
	return s, err
}

// SizeOfOwn measures the volumes that only this node uses and that are stored with the host's
// state. It leaves out what cannot be read.
func SizeOfOwn(ctx context.Context, dirs host.Dirs, n *observe.Node) (all Size) {
	for _, m := range n.Mounts {
		if m.Shared || !m.From().WithState || m.Copy == spec.NoCopy {
			continue
		}
		if s, err := SizeOf(ctx, Path(dirs, n.Site, n.Name, m)); err == nil {
			all = Size{all.Apparent + s.Apparent, all.Disk + s.Disk, all.Files + s.Files, all.Partial || s.Partial}
		}
	}
	return all
}
