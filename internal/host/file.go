package host

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// WriteFile writes a file of this machine whole or not at all. Its owner must be numeric or empty.
func WriteFile(f File) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	if f.Link != "" {
		return renameio.Symlink(f.Link, f.Path)
	}
	uid, gid := 0, 0
	if f.Owner != "" {
		if _, err := fmt.Sscanf(f.Owner, "%d:%d", &uid, &gid); err != nil {
			return fmt.Errorf("owner %q of %s is not numeric", f.Owner, f.Path)
		}
	}
	pending, err := renameio.NewPendingFile(f.Path, renameio.WithPermissions(os.FileMode(f.Mode)), renameio.IgnoreUmask())
	if err != nil {
		return err
	}
	defer pending.Cleanup() //nolint:errcheck // after success there is nothing to clean up
	if os.Geteuid() == 0 {
		if err := pending.Chown(uid, gid); err != nil {
			return err
		}
	}
	if _, err := pending.Write(f.Content); err != nil {
		return err
	}
	return pending.CloseAtomicallyReplace()
}
