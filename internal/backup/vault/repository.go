package vault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A Repository is a directory with many backups, which share their blocks.
//
//	orrery-backup        the format
//	blocks/ab/abcd….zst  blocks, by the digest of the file
//	index/….idx          which pieces are in blocks, so that not each of these must be opened; made anew when it lacks something
//	index/read           how the files of blocks were when they were last read; made anew when it lacks something
//	backups/ID.json      manifests
//	rotten/              blocks that are no longer what their names say, and of which something was found nowhere else
//	new/                 what is being written
//
// Whoever carries it about may have written it, so it is reached through package tree, and every name in it is a digest or ends with one.
type Repository struct {
	dir   string
	root  *tree.Root
	lock  *os.File
	index *index
	made  sync.Map // directories of blocks that are there

	mu      sync.Mutex
	files   map[Digest]*blockFile
	checked Checked
}

const markName = "orrery-backup"

// mark is what a repository and an archive begin with.
func mark() []byte { return fmt.Appendf(nil, "orrery backup %d\n", Format) }

// MostNames is how many names there may be in one directory of a repository.
const MostNames = 1 << 20

// OpenRepository opens a repository for reading.
func OpenRepository(dir string) (*Repository, error) {
	r := &Repository{dir: dir, index: newIndex()}
	text, err := []byte(nil), error(nil)
	if r.root, err = OpenDirectory(dir); err == nil {
		text, err = r.root.ReadFile(markName, 1<<10)
	}
	switch {
	case err != nil:
		err = problem.New(problem.Usage, "this directory holds no backups").At(dir).Because(problem.Reason(err)).
			Try("name the directory that was given to orrery backup")
	case string(text) != string(mark()):
		err = problem.New(problem.Unable, "the backups in this directory are of another format: %q", strings.TrimSpace(string(text))).
			At(dir).Try("use the version of Orrery that wrote them")
	default:
		if r.lock, err = r.hold(host.Shared); err == nil {
			err = r.read()
		}
	}
	if err != nil {
		r.Close() //nolint:errcheck // it was only read
		return nil, err
	}
	return r, nil
}

// OpenDirectory opens a directory that the operator names, perhaps by a link.
func OpenDirectory(dir string) (*tree.Root, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	return tree.Open(real)
}

// WriteRepository opens a repository for writing; an empty or missing directory becomes one.
func WriteRepository(dir string) (*Repository, error) {
	if err := begin(dir); err != nil {
		return nil, err
	}
	r := &Repository{dir: dir, index: newIndex()}
	var err error
	if r.root, err = OpenDirectory(dir); err == nil {
		r.lock, err = r.hold(host.Alone)
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

// clear removes what a run that was killed left half written. The caller is alone here.
func (r *Repository) clear() error {
	if err := r.root.RemoveAll("new"); err != nil {
		return err
	}
	for dir, begins := range map[string]string{".": "." + markName, "backups": ".", "index": "."} {
		names, err := r.root.Names(dir, MostNames)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, name := range names {
			if strings.HasPrefix(name, begins) {
				if err := r.root.Remove(path.Join(dir, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// begin makes a directory a repository, unless it is one.
func begin(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.Usage, "the directory for backups cannot be read").At(dir).Because(problem.Reason(err))
	}
	at := filepath.Join(dir, markName)
	is, err := tree.ReadFile(at, 1<<10)
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
		return problem.New(problem.Failed, "the directory for backups cannot be made").At(dir).Because(problem.Reason(err))
	}
	err = host.WriteFile(host.File{Path: at, Content: mark(), Mode: 0o600})
	if is, other := tree.ReadFile(at, 1<<10); err != nil && other == nil && string(is) == string(mark()) {
		return nil // another run was here first, and has cleared our part away
	}
	return err
}

// hold takes the lock of a repository: shared for readers, alone for a writer.
func (r *Repository) hold(how host.Sharing) (*os.File, error) {
	f, err := r.root.OpenFile(markName)
	if err != nil {
		return nil, err
	}
	if err := host.Flock(f, how); err != nil {
		f.Close()
		return nil, problem.New(problem.Locked, "another orrery is at work in this directory of backups").At(r.dir).Try("wait for it, or end that process")
	}
	return f, nil
}

// Where names the directory.
func (r *Repository) Where() string { return r.dir }

// Close lets others write.
func (r *Repository) Close() error {
	var err error
	if r.lock != nil {
		err = r.lock.Close()
	}
	if r.root != nil {
		err = errors.Join(err, r.root.Close())
	}
	return err
}

func (r *Repository) has() *index { return r.index }

// read finds out what is there. Blocks that no index tells of were written by a run that did not come to its end: they are
// used if they are whole.
func (r *Repository) read() error {
	if err := r.list(); err != nil {
		return err
	}
	r.recall()
	indexes, err := r.indexFiles()
	if err != nil {
		return err
	}
	for _, name := range indexes {
		told, err := r.readIndex(name)
		if err != nil {
			continue // it is only a shortcut
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
		pieces, err := r.whole(block)
		if err != nil {
			r.condemn(block, err)
			continue
		}
		r.files[block].read = time.Now().Unix()
		if err := r.index.add(block, pieces); err != nil {
			return Damaged(r, blockName(block), err)
		}
	}
	return nil
}

// list finds the files of blocks.
func (r *Repository) list() error {
	r.files = map[Digest]*blockFile{}
	blocks, err := r.root.Sub("blocks")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return Damaged(r, "blocks", problem.Reason(err))
	}
	defer blocks.Close()
	err = blocks.Walk(context.Background(), tree.Bounds{Depth: 2, Names: MostNames, All: tree.Ample.All}, func(e *tree.Entry) error {
		part, name, inner := strings.Cut(e.Path, "/")
		if !inner {
			if e.Path != "." && len(part) != 2 {
				return tree.SkipDir
			}
			return nil
		}
		var d Digest
		if d.UnmarshalText([]byte(strings.TrimSuffix(name, ".zst"))) == nil && blockName(d) == "blocks/"+e.Path {
			r.files[d] = fileOf(&e.Stat)
		}
		return tree.SkipDir
	})
	if err != nil {
		return Damaged(r, "blocks", problem.Reason(err))
	}
	return nil
}

func (r *Repository) block(name Digest) ([]byte, error) {
	stored, err := r.root.ReadFile(blockName(name), mostBlock)
	if err != nil {
		return nil, Damaged(r, blockName(name), problem.Reason(err))
	}
	return stored, nil
}

// put writes a block. It does not wait for the disk: a power cut leaves a block that no index tells of, and whose digest is looked at.
func (r *Repository) put(name Digest, block []byte) error {
	fresh, path := "new/"+name.String(), blockName(name)
	err := r.file(fresh, block, false)
	if dir := filepath.Dir(path); err == nil && !r.known(dir) {
		err = r.clearing(dir, func() error { return r.root.Mkdir(dir, 0o700) })
	}
	if err == nil {
		err = r.clearing(path, func() error { return r.root.Rename(fresh, path) })
	}
	if err != nil {
		return unwritten(r.dir, err)
	}
	st, err := r.root.Lstat(path)
	if err != nil {
		return unwritten(r.dir, err)
	}
	file := fileOf(st)
	file.read, file.fresh = time.Now().Unix(), true
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[name] = file
	return nil
}

// clearing makes a file or directory, in the place of what nobody wrote: a directory where a file belongs, or a file where a directory does.
func (r *Repository) clearing(at string, make func() error) error {
	err := make()
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTDIR) {
		if err = r.root.RemoveAll(at); err == nil {
			err = make()
		}
	}
	return err
}

// file writes a file whole or not at all; sync waits until it is on disk.
func (r *Repository) file(name string, content []byte, sync bool) error {
	uid, gid := os.Geteuid(), os.Getegid()
	f := tree.File{Path: name, Content: content, Uid: uid, Gid: gid, Mode: 0o600, Sync: sync}
	return r.clearing(name, func() error { return r.root.Put(f, uid, gid) })
}

// known reports whether a directory of blocks was there before.
func (r *Repository) known(dir string) bool {
	if _, loaded := r.made.LoadOrStore(dir, true); !loaded {
		return false
	}
	_, err := r.root.Lstat(dir)
	return err == nil
}

// write writes a file whole or not at all, and waits until it is on disk.
func (r *Repository) write(name string, content []byte) error {
	if err := r.file(name, content, true); err != nil {
		return unwritten(r.dir, err)
	}
	return nil
}

// Commit brings all blocks to disk, then the index, then the manifest. Only then do blocks go that are no longer whole.
func (r *Repository) Commit(m *Manifest) (string, error) {
	if err := r.Settle(); err != nil {
		return "", err
	}
	ids, err := r.names()
	if err != nil {
		return "", err
	}
	m.put(r.order(ids))
	text, id, err := spell(m)
	if err != nil {
		return "", err
	}
	if err := r.write("backups/"+id+".json", text); err != nil {
		return "", err
	}
	return id, r.Retire()
}

// Settle brings all blocks to disk, and then the index.
func (r *Repository) Settle() error {
	if err := r.sync(); err != nil {
		return err
	}
	if err := r.writeIndex(); err != nil {
		return err
	}
	return r.remember()
}

func (r *Repository) sync() error {
	if err := unix.Syncfs(r.root.Fd()); err != nil {
		return unwritten(r.dir, err)
	}
	return nil
}

// Backups returns the names of the backups, in the order in which they were taken.
func (r *Repository) Backups() ([]string, error) {
	ids, err := r.names()
	r.order(ids)
	return ids, err
}

// names returns the names of the backups, in no order.
func (r *Repository) names() ([]string, error) {
	names, err := r.root.Names("backups", MostNames)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var ids []string
	for _, name := range names {
		if isManifest(name) {
			ids = append(ids, strings.TrimSuffix(name, ".json"))
		}
	}
	return ids, err
}

// Manifest reads what a backup has in it.
func (r *Repository) Manifest(id string) (*Manifest, error) {
	missing := problem.New(problem.Usage, "there is no backup %s", id).At(r.dir).Try("orrery backup ls %s", r.dir)
	if !isManifest(id + ".json") {
		return nil, missing
	}
	text, err := r.root.ReadFile("backups/"+id+".json", MostManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, Damaged(r, "backups/"+id+".json", problem.Reason(err))
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
	return EachBlock(ctx, used, func(block Digest) error {
		if _, err := r.whole(block); err != nil {
			return Damaged(r, hurt(r, m, block), err)
		}
		read(r.files[block].size)
		return nil
	})
}

// unwritten says that a backup cannot be written.
func unwritten(where string, err error) error {
	return problem.New(problem.OfWriting(err), "the backup cannot be written").At(where).Because(problem.Reason(err)).
		Try("what was written stays, and the same command goes on with it")
}

var _ io.Closer = (*Repository)(nil)

// Holds reports whether a piece is in it.
func (r *Repository) Holds(d Digest) bool {
	_, has := r.index.find(d)
	return has
}

// Unreadable notes that the manifest of a backup could not be read.
func (r *Repository) Unreadable(id string) { r.checked.Manifests = append(r.checked.Manifests, id) }
