package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// DefaultState is the default state directory of a host.
const DefaultState = "/var/lib/orrery"

// A Store keeps the layers of a host, each in a directory: DIGEST/tree is the tree,
// DIGEST/layer.json its Record and DIGEST/manifest.gz the digests of its files.
type Store struct {
	Dir   string // <state>/store
	Cache Cache  // <state>/cache

	state    string
	stagings string // where layers are built; see staging
	// incoming is where layers from other hosts are received. After an interruption, what has been
	// received stays there and is not requested again.
	incoming string
	disk     *disk
	locks    locks
	imports  imports
}

// Open returns the store of a state directory. It creates no files.
func Open(state string) *Store {
	if state == "" {
		state = DefaultState
	}
	dir := filepath.Join(state, "store")
	s := &Store{
		Dir: dir, Cache: Cache{filepath.Join(state, "cache")}, state: state,
		stagings: filepath.Join(dir, ".staging"), incoming: filepath.Join(dir, ".incoming"),
		disk: &disk{dir, freeBytes}, locks: locks{filepath.Join(dir, ".lock")},
	}
	s.imports = imports{filepath.Join(dir, ".imports"), s.locks, s.disk}
	return s
}

// Tree returns the path of a layer's tree.
func (s *Store) Tree(digest string) string { return filepath.Join(s.Dir, digest, "tree") }

// Layers returns the digests of all complete layers.
func (s *Store) Layers() (map[string]bool, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]bool{}, nil
	}
	if err != nil {
		return nil, err
	}
	whole := map[string]bool{}
	for _, e := range entries {
		if IsDigest(e.Name()) && s.has(e.Name()) {
			whole[e.Name()] = true
		}
	}
	return whole, nil
}

func (s *Store) has(digest string) bool {
	_, err := os.Lstat(filepath.Join(s.Dir, digest, "layer.json"))
	return err == nil
}

// IsDigest reports whether name can be the name of a layer. Other names in the store begin with a
// dot.
func IsDigest(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, c := range name {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// createPrivate creates the directories with access for root only. A store of old trees has old
// set-user-ID programs, which the host's users must not be able to run.
func (s *Store) createPrivate() error {
	if err := os.MkdirAll(s.state, 0o711); err != nil {
		return err
	}
	for _, dir := range []string{s.Dir, s.Cache.dir, s.stagings, s.locks.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}
