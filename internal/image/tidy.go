package image

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// volatile are the directories whose content is of this moment or of this build.
var volatile = []string{"tmp", "run", "var/tmp", "var/lib/apt/lists", "var/cache/apt", "var/cache/ldconfig", "root/.cache"}

// leavings are files that installing packages leaves: logs, and dpkg's copies of what was there before.
var leavings = []string{
	"var/log/*.log", "var/log/apt/*", "var/log/btmp", "var/log/wtmp", "var/log/lastlog", "var/log/faillog", "var/log/journal/*",
	"var/lib/dpkg/*-old", "var/cache/debconf/*-old", "etc/*-", "var/lib/systemd/random-seed", "var/lib/systemd/catalog/database.*",
	"root/.bash_history", "root/.wget-hsts",
}

// tidy removes what is no part of the content of a tree. Whiteouts and opaque directories stay: in a role layer they
// hide what the base has.
func tidy(tree string) error {
	if err := empty(tree, volatile...); err != nil {
		return err
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, pattern := range leavings {
		found, err := filepath.Glob(filepath.Join(tree, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			name, err := filepath.Rel(tree, path)
			if err != nil {
				return err
			}
			var st syscall.Stat_t
			if err := syscall.Lstat(path, &st); err == nil && isWhiteout(&st) {
				continue
			}
			if err := root.RemoveAll(name); err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
	}
	return nil
}
