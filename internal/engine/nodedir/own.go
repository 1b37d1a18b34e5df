package nodedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ChownDir makes a user the owner of a directory that a node sees, and of everything directly in it. New
// files of Orrery inherit the owner (Inherit). The node cannot change them, because it sees the
// directory read-only.
func ChownDir(dir string, id int) error {
	if err := os.Chown(dir, id, id); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// Ignore a missing file: the step of another node writes the names of all nodes, and may
		// just have renamed the file.
		if err := os.Lchown(filepath.Join(dir, e.Name()), id, id); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// InheritOwner makes the owner of a directory the owner of a file, unless that is the user who runs this
// program.
func InheritOwner(dir, file string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() {
		return nil
	}
	return os.Lchown(file, int(owner.Uid), int(owner.Gid))
}
