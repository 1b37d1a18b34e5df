// Package hostsfile keeps the names of nodes in the hosts file of this machine, if its administrator
// wants that.
//
// Each site has one block in the file, between two lines that name the site. Nothing else of the file
// changes, and it is replaced atomically. The package stores the names of each site beside the site's
// other runtime files even while no hosts file has them, so that Enable needs no site directory.
package hostsfile

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"orrery/internal/host"
)

// A File is the hosts file of a machine.
type File struct {
	Path string // hosts(5)
	// Lock is the lock under which the file is changed. A machine has one, even if it has several
	// state directories.
	Lock string
	Dirs host.Dirs
}

// Local returns the hosts file of this machine.
func Local(dirs host.Dirs) File {
	return File{Path: "/etc/hosts", Lock: filepath.Join(host.RunDir, "hosts.lock"), Dirs: dirs}
}

// Marker returns the path of the file that exists while the administrator wants names in the hosts
// file. It belongs to a state directory, so that other state directories, as those of tests, never
// change the hosts file.
func (f File) Marker() string { return filepath.Join(f.Dirs.State, "names-on-host") }

// StoredNames returns the path of the stored names of a site's nodes.
func (f File) StoredNames(key string) string {
	return filepath.Join(filepath.Dir(f.Dirs.Names(key)), "host-names")
}

// Enabled reports whether the hosts file has the names of nodes.
func (f File) Enabled() bool {
	_, err := os.Lstat(f.Marker())
	return err == nil
}

// Set stores the names of a site's nodes, as lines of hosts(5), and writes them to the hosts file if it
// has names. If text is nil, Set removes them from both.
func (f File) Set(ctx context.Context, key string, text []byte) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	path := f.StoredNames(key)
	if text == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	} else if err := host.WriteFile(host.File{Path: path, Content: text, Mode: 0o600}); err != nil {
		return err
	}
	if !f.Enabled() {
		return nil
	}
	return f.edit(func(of string) ([]byte, bool) { return text, of == key }, key)
}

// A Block has the names of one site's nodes in the hosts file.
type Block struct {
	Key   string // of the site
	Lines []byte // hosts(5)
}

// Blocks returns all names of nodes in the hosts file.
func (f File) Blocks() ([]Block, error) {
	text, err := f.read()
	if err != nil {
		return nil, err
	}
	parts, err := f.parse(text.content)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	for _, p := range parts {
		if p.key != "" {
			blocks = append(blocks, Block{p.key, p.lines()})
		}
	}
	return blocks, nil
}

// Names returns the names of one site's nodes in the hosts file.
func (f File) Names(key string) ([]byte, error) {
	blocks, err := f.Blocks()
	for _, b := range blocks {
		if b.Key == key {
			return b.Lines, nil
		}
	}
	return nil, err
}

// Enable writes the stored names of all sites to the hosts file and keeps them there from now on.
func (f File) Enable(ctx context.Context) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	names, err := f.stored()
	if err != nil {
		return err
	}
	keys := slices.Sorted(maps.Keys(names))
	// The hosts file first: if it cannot be written, nothing is enabled.
	if err := f.edit(func(of string) ([]byte, bool) { return names[of], names[of] != nil }, keys...); err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: f.Marker(), Mode: 0o644})
}

// Disable removes all names of nodes from the hosts file, including those of sites that this machine no
// longer has, and writes none from now on.
func (f File) Disable(ctx context.Context) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.Remove(f.Marker()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.edit(func(string) ([]byte, bool) { return nil, true })
}

// stored returns the stored names of all sites, by key.
func (f File) stored() (map[string][]byte, error) {
	paths, err := filepath.Glob(f.StoredNames("*"))
	if err != nil {
		return nil, err
	}
	names := map[string][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		names[filepath.Base(filepath.Dir(path))] = text
	}
	return names, nil
}

func (f File) lock(ctx context.Context) (unlock func(), err error) {
	l, err := host.WaitLock(ctx, f.Lock, host.Exclusive, "the lock of "+f.Path)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}
