package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A Repository is a directory with many backups, which share their blocks.
//
//	orrery-backup        the format
//	blocks/ab/abcd….zst  blocks, by the digest of the file
//	index/….idx          which pieces are in which block
//	index/read           the state of each block's file when it was last verified
//	backups/ID.json      manifests
//	rotten/              damaged blocks with pieces that are in no other block
//	new/                 incomplete files
//
// The files in index/ save reading all blocks. If they are incomplete, they are written again.
//
// The directory is not trusted, because anyone may have written it. So it is read through package
// tree, and every name in it is a digest or ends with one.
type Repository struct {
	*directory
	blockStore
	manifests
	indexes indexFiles
}

func newRepository(dir string) *Repository {
	d := &directory{dir: dir}
	return &Repository{d, blockStore{directory: d, index: newIndex()}, manifests{d}, indexFiles{d}}
}

const markName = "orrery-backup"

// mark returns the content of the first file of a repository or archive.
func mark() []byte { return fmt.Appendf(nil, "orrery backup %d\n", Format) }

// MaxNames limits the number of names in one directory of a repository.
const MaxNames = 1 << 20

// OpenRepository opens a repository for reading.
func OpenRepository(dir string) (*Repository, error) {
	r := newRepository(dir)
	text, err := []byte(nil), error(nil)
	if r.root, err = OpenDirectory(dir); err == nil {
		text, err = r.root.ReadFile(markName, 1<<10)
	}
	switch {
	case err != nil:
		err = problem.New(problem.Usage, "this directory contains no backups").At(dir).Because(problem.PathErrorCause(err)).
			Try("name the directory that orrery backup wrote to")
	case string(text) != string(mark()):
		err = problem.New(problem.Unable, "the backups in this directory have another format: %q",
			strings.TrimSpace(string(text))).
			At(dir).Try("use the version of Orrery that wrote them")
	default:
		if r.lock, err = r.acquire(host.Shared); err == nil {
			err = r.read()
		}
	}
	if err != nil {
		r.Close() //nolint:errcheck // it was only read
		return nil, err
	}
	return r, nil
}

// OpenDirectory opens a directory that the user named. The name may contain symbolic links.
func OpenDirectory(dir string) (*tree.Root, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	return tree.Open(real)
}

// WriteRepository opens a repository for writing. It turns an empty or missing directory into one.
func WriteRepository(dir string) (*Repository, error) {
	if err := begin(dir); err != nil {
		return nil, err
	}
	r := newRepository(dir)
	var err error
	if r.root, err = OpenDirectory(dir); err == nil {
		r.lock, err = r.acquire(host.Exclusive)
	}
	if err == nil {
		err = r.clear()
	}
	for _, part := range []string{"new", "blocks", "index", "backups"} {
		if err == nil {
			err = r.root.Mkdir(part, 0o700)
		}
	}
	if err == nil {
		err = r.read()
	}
	if err != nil {
		r.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return r, nil
}

// begin turns a directory into a repository, unless it is one.
func begin(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.Usage, "the directory for backups cannot be read").At(dir).
			Because(problem.PathErrorCause(err))
	}
	at := filepath.Join(dir, markName)
	content, err := tree.ReadFile(at, 1<<10)
	if err == nil {
		if string(content) != string(mark()) {
			return problem.New(problem.Unable, "the backups in this directory have another format").At(dir).
				Try("name another directory")
		}
		return nil
	}
	if slices.ContainsFunc(names, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), "."+markName) }) {
		return problem.New(problem.Usage, "this directory contains other files than backups").At(dir).
			Try("name an empty or a new directory")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return problem.New(problem.Failed, "the directory for backups cannot be created").At(dir).
			Because(problem.PathErrorCause(err))
	}
	err = host.WriteFile(host.File{Path: at, Content: mark(), Mode: 0o600})
	if current, other := tree.ReadFile(at, 1<<10); err != nil && other == nil && string(current) == string(mark()) {
		return nil // another run was faster, and has removed our temporary file
	}
	return err
}

// read finds out which blocks exist. Blocks that no index lists were written by a run that was
// interrupted. They are used if they are intact.
func (r *Repository) read() error {
	if err := r.list(); err != nil {
		return err
	}
	r.loadReadStates()
	indexes, err := r.indexes.names()
	if err != nil {
		return err
	}
	for _, name := range indexes {
		told, err := r.indexes.read(name)
		if err != nil {
			continue // the index is only a shortcut
		}
		for block, pieces := range told {
			if r.files[block] == nil {
				continue
			}
			if err := r.index.add(block, pieces); err != nil {
				return Damaged(r, "index/"+name, err)
			}
		}
	}
	for block := range maps.Clone(r.files) {
		if _, known := r.index.blocks[block]; known {
			continue
		}
		pieces, err := r.readVerified(block)
		if err != nil {
			r.markCorrupt(block, err)
			continue
		}
		r.files[block].read = time.Now().Unix()
		if err := r.index.add(block, pieces); err != nil {
			return Damaged(r, blockName(block), err)
		}
	}
	return nil
}

// Commit brings to disk first all blocks, then the index, then the manifest. Only then does it move
// damaged blocks away.
func (r *Repository) Commit(m *Manifest) (string, error) {
	if err := r.Settle(); err != nil {
		return "", err
	}
	ids, err := r.names()
	if err != nil {
		return "", err
	}
	m.orderAfter(r.order(ids))
	text, id, err := encodeManifest(m)
	if err != nil {
		return "", err
	}
	if err := r.write("backups/"+id+".json", text); err != nil {
		return "", err
	}
	return id, r.RemoveCorrupt()
}

// Settle brings all blocks to disk, and then the index.
func (r *Repository) Settle() error {
	if err := r.sync(); err != nil {
		return err
	}
	if err := r.indexes.save(r.index); err != nil {
		return err
	}
	return r.saveReadStates()
}

// Verify reads and verifies everything that belongs to a backup.
func (r *Repository) Verify(ctx context.Context, id string, read func(int64)) error {
	m, err := r.Manifest(id)
	if err != nil {
		return err
	}
	used, err := usedBlocks(r, m)
	if err != nil {
		return err
	}
	return EachBlock(ctx, used, func(block Digest) error {
		if _, err := r.readVerified(block); err != nil {
			return Damaged(r, damagedName(r, m, block), err)
		}
		read(r.files[block].size)
		return nil
	})
}
