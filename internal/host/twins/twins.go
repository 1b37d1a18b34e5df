// Package twins stores the records of twins on a host: a file beside the state of each.
package twins

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/site/twin"
)

// Path returns the path of a twin's record.
func Path(dirs host.Dirs, key string) string { return filepath.Join(dirs.Site(key), "twin.json") }

// Write writes the record of a twin.
func Write(dirs host.Dirs, r twin.Record) error {
	path := Path(dirs, r.Key())
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return host.WriteJSON(path, 0o600, r)
	}
	// A new twin appears together with its record: without a record, no run would remove the
	// directory.
	fresh := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+"-new")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := host.WriteJSON(filepath.Join(fresh, filepath.Base(path)), 0o600, r); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// Read reads the record of a twin.
func Read(dirs host.Dirs, key string) (twin.Record, error) {
	return host.ReadJSON[twin.Record](Path(dirs, key))
}

// List returns the records of all twins on the host, by key.
func List(dirs host.Dirs) []twin.Record {
	paths, _ := filepath.Glob(Path(dirs, "*"))
	all := []twin.Record{}
	for _, path := range paths {
		if r, err := Read(dirs, filepath.Base(filepath.Dir(path))); err == nil {
			all = append(all, r)
		}
	}
	return all
}
