package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Cache keeps downloaded packages and package lists for all builds of a host. It also installs
// packages in scratch containers.
type Cache struct{ dir string }

func (c Cache) archives() string { return filepath.Join(c.dir, "apt", "archives") }
func (c Cache) lists() string    { return filepath.Join(c.dir, "apt", "lists") }
func (c Cache) pip() string      { return filepath.Join(c.dir, "pip") }

// Archive returns the path at which apt keeps a downloaded package.
func (c Cache) Archive(file string) string { return filepath.Join(c.archives(), filepath.Base(file)) }

// cacheAge is how long a downloaded package is kept for later builds.
const cacheAge = 30 * 24 * time.Hour

// trim removes packages and lists that were downloaded more than cacheAge ago. A build that is
// using them downloads them again.
func (c Cache) trim(now time.Time) error {
	err := filepath.WalkDir(c.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || e.IsDir() || strings.HasSuffix(path, "lock") || now.Sub(changed(info)) < cacheAge {
			return nil
		}
		return os.Remove(path)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// changed returns when a file was created here. Its modification time is that in the archive.
func changed(info fs.FileInfo) time.Time {
	st := info.Sys().(*syscall.Stat_t)
	return time.Unix(st.Ctim.Sec, st.Ctim.Nsec)
}
