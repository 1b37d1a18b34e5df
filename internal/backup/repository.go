package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// A Repository is a directory with many backups, which share their blocks.
//
//	orrery-backup        the format
//	blocks/ab/abcd….zst  blocks, by the digest of the file
//	index/….idx          which pieces are in blocks, so that not each of these must be opened; made anew when it lacks something
//	backups/ID.json      manifests
//	new/                 what is being written
type Repository struct {
	dir   string
	lock  *os.File
	index *index
	made  sync.Map // directories of blocks that are there
}

const markName = "orrery-backup"

// mark is what a repository and an archive begin with.
func mark() []byte { return fmt.Appendf(nil, "orrery backup %d\n", format) }

// OpenRepository opens a repository for reading.
func OpenRepository(dir string) (*Repository, error) {
	text, err := os.ReadFile(filepath.Join(dir, markName))
	if err != nil {
		return nil, problem.New(problem.Usage, "this directory holds no backups").At(dir).Because(reason(err)).
			Try("name the directory that was given to orrery backup")
	}
	if string(text) != string(mark()) {
		return nil, problem.New(problem.Unable, "the backups in this directory are of another format: %q", strings.TrimSpace(string(text))).
			At(dir).Try("use the version of Orrery that wrote them")
	}
	r := &Repository{dir: dir, index: newIndex()}
	if r.lock, err = hold(dir, unix.LOCK_SH); err != nil {
		return nil, err
	}
	if err := r.read(); err != nil {
		r.Close() //nolint:errcheck // it was only read
		return nil, err
	}
	return r, nil
}

// WriteRepository opens a repository for writing; an empty or missing directory becomes one.
func WriteRepository(dir string) (*Repository, error) {
	if err := begin(dir); err != nil {
		return nil, err
	}
	lock, err := hold(dir, unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	r := &Repository{dir: dir, index: newIndex(), lock: lock}
	err = os.RemoveAll(r.path("new")) // of a run that was killed
	for _, part := range []string{"new", "blocks", "index", "backups"} {
		err = errors.Join(err, os.MkdirAll(r.path(part), 0o700))
	}
	if err == nil {
		err = r.read()
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return r, nil
}

func begin(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.Usage, "the directory for backups cannot be read").At(dir).Because(reason(err))
	}
	at := filepath.Join(dir, markName)
	is, err := os.ReadFile(at)
	if err == nil {
		if string(is) != string(mark()) {
			return problem.New(problem.Unable, "the backups in this directory are of another format").At(dir).Try("name another directory")
		}
		return nil
	}
	if slices.ContainsFunc(names, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), "."+markName) }) {
		return problem.New(problem.Usage, "this directory holds other things than backups").At(dir).Try("name one that is empty, or new")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return problem.New(problem.Failed, "the directory for backups cannot be made").At(dir).Because(reason(err))
	}
	return host.WriteFile(host.File{Path: at, Content: mark(), Mode: 0o600})
}

// hold takes the lock of a repository: shared for readers, alone for a writer.
func hold(dir string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, markName), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, problem.New(problem.Locked, "another orrery is at work in this directory of backups").At(dir).Try("wait for it, or end that process")
	}
	return f, nil
}

func (r *Repository) path(parts ...string) string {
	return filepath.Join(append([]string{r.dir}, parts...)...)
}

// Where names the directory.
func (r *Repository) Where() string { return r.dir }

// Close lets others write.
func (r *Repository) Close() error { return r.lock.Close() }

func (r *Repository) has() *index { return r.index }

// read finds out what is there. Blocks that no index tells of were written by a run that did not come to its end: they are
// used if they are whole.
func (r *Repository) read() error {
	there, err := r.there()
	if err != nil {
		return err
	}
	indexes, err := filepath.Glob(r.path("index", "*.idx"))
	if err != nil {
		return err
	}
	for _, path := range indexes {
		told, err := readIndex(path)
		if err != nil {
			continue // it is only a shortcut
		}
		for block, pieces := range told {
			if there[block] {
				r.index.add(block, pieces)
			}
		}
	}
	for block := range there {
		if _, known := r.index.blocks[block]; known {
			continue
		}
		stored, err := r.block(block)
		if err != nil {
			return err
		}
		pieces, err := piecesOf(stored)
		if err == nil && digestOf(stored) == block {
			r.index.add(block, pieces)
		}
	}
	return nil
}

// there gives the blocks of which there is a file.
func (r *Repository) there() (map[Digest]bool, error) {
	paths, err := filepath.Glob(r.path("blocks", "*", "*.zst"))
	if err != nil {
		return nil, err
	}
	all := map[Digest]bool{}
	for _, path := range paths {
		var d Digest
		if d.UnmarshalText([]byte(strings.TrimSuffix(filepath.Base(path), ".zst"))) == nil {
			all[d] = true
		}
	}
	return all, nil
}

func (r *Repository) block(name Digest) ([]byte, error) {
	stored, err := os.ReadFile(r.path(blockName(name)))
	if err != nil {
		return nil, damaged(r, blockName(name), reason(err))
	}
	return stored, nil
}

// put writes a block. It does not wait for the disk: a power cut leaves a block that no index tells of, and whose digest is looked at.
func (r *Repository) put(name Digest, block []byte) error {
	fresh, path := r.path("new", name.String()), r.path(blockName(name))
	if err := os.WriteFile(fresh, block, 0o600); err != nil {
		return unwritten(r.dir, err)
	}
	if dir := filepath.Dir(path); !r.known(dir) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return unwritten(r.dir, err)
		}
	}
	return os.Rename(fresh, path)
}

func (r *Repository) known(dir string) bool {
	_, loaded := r.made.LoadOrStore(dir, true)
	return loaded && exists(dir)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// commit brings all blocks to disk, then the index, then the manifest.
func (r *Repository) commit(m *Manifest) (string, error) {
	if err := r.sync(); err != nil {
		return "", err
	}
	if err := r.writeIndex(); err != nil {
		return "", err
	}
	text, id, err := spell(m)
	if err != nil {
		return "", err
	}
	return id, host.WriteFile(host.File{Path: r.path("backups", id+".json"), Content: text, Mode: 0o600})
}

func (r *Repository) sync() error {
	dir, err := os.Open(r.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return unwritten(r.dir, err)
	}
	return nil
}

// Backups gives the names of the backups, the oldest first.
func (r *Repository) Backups() ([]string, error) {
	paths, err := filepath.Glob(r.path("backups", "*.json"))
	var ids []string
	for _, path := range paths {
		ids = append(ids, strings.TrimSuffix(filepath.Base(path), ".json"))
	}
	slices.Sort(ids)
	return ids, err
}

// Manifest reads what a backup has in it.
func (r *Repository) Manifest(id string) (*Manifest, error) {
	text, err := os.ReadFile(r.path("backups", id+".json"))
	if err != nil {
		return nil, problem.New(problem.Usage, "there is no backup %s", id).At(r.dir).Try("orrery backup ls %s", r.dir)
	}
	return understand(r, id, text)
}

// Verify reads all that a backup consists of.
func (r *Repository) Verify(ctx context.Context, id string, read func(int64)) error {
	m, err := r.Manifest(id)
	if err != nil {
		return err
	}
	used, err := usedBlocks(r, m)
	if err != nil {
		return err
	}
	return eachBlock(ctx, used, func(block Digest) error {
		stored, err := r.block(block)
		if err != nil {
			return damaged(r, hurt(r, m, block), err)
		}
		read(int64(len(stored)))
		if digestOf(stored) != block {
			return damaged(r, hurt(r, m, block), errDigest)
		}
		return nil
	})
}

// spell writes a manifest, and gives it a name with the time and its digest in it.
func spell(m *Manifest) (text []byte, id string, err error) {
	text, err = json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, "", err
	}
	text = append(text, '\n')
	return text, nameOf(m, text), nil
}

func nameOf(m *Manifest, text []byte) string {
	return m.Time.UTC().Format("20060102-150405") + "-" + digestOf(text).String()[:16]
}

// understand reads a manifest, which must be what its name says.
func understand(v Vault, id string, text []byte) (*Manifest, error) {
	m := &Manifest{}
	err := json.Unmarshal(text, m)
	if err == nil && m.Format != format {
		return nil, problem.New(problem.Unable, "backup %s is of format %d; this Orrery reads format %d", id, m.Format, format).At(v.Where())
	}
	if err == nil && nameOf(m, text) != id {
		err = errDigest
	}
	if err != nil {
		return nil, damaged(v, "backups/"+id+".json", err)
	}
	return m, nil
}

// unwritten says that a backup cannot be written.
func unwritten(where string, err error) error {
	kind := problem.Failed
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		kind = problem.Unable
	}
	return problem.New(kind, "the backup cannot be written").At(where).Because(reason(err)).
		Try("what was written stays, and the same command goes on with it")
}

// reason gives why an operation on a file failed, without the path, which the problem names already.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

var _ io.Closer = (*Repository)(nil)
