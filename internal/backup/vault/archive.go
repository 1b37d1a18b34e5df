package vault

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// An Archive is one backup in one file: a tar archive of the files of a repository with that
// backup, so that `tar -xf` turns it into one. Every byte of the file is verified. Blocks and the
// manifest are named by their digests, and headers and padding have only one valid form.
type Archive struct {
	path  string
	file  *os.File
	index *index
	at    map[Digest]span // where blocks are
	id    string          // of the backup, or "" if the archive is incomplete
	text  []byte          // the manifest

	mu  sync.Mutex // held while something is appended
	end int64
	cut int64 // where the manifest starts
}

type span struct{ at, size int64 }

const tarBlock = 512

// errTruncated is the error for an archive that is truncated.
var errTruncated = errors.New("it is truncated")

// OpenArchive opens an archive for reading. It reads only the headers.
func OpenArchive(path string) (*Archive, error) {
	f, err := tree.OpenFile(path)
	if err != nil {
		return nil, problem.New(problem.Usage, "the backup cannot be read").At(path).Because(problem.PathErrorCause(err))
	}
	a := &Archive{path: path, file: f, index: newIndex(), at: map[Digest]span{}}
	if err := a.scan(context.Background(), a.look, func(int64) {}); err != nil {
		f.Close()
		return nil, err
	}
	if a.id == "" {
		f.Close()
		return nil, Damaged(a, "its manifest", errTruncated)
	}
	return a, nil
}

// WriteArchive opens an archive for writing. The archive is written under another name until it is
// complete. WriteArchive continues what a run that was killed has left under that name.
func WriteArchive(path string) (*Archive, error) {
	if tree.Exists(path) {
		return nil, problem.New(problem.Usage, "the file already exists").At(path).
			Try("choose another name, or remove it")
	}
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, problem.New(problem.Usage, "the backup cannot be written").At(part).Because(problem.PathErrorCause(err)).
			Try("choose a writable directory")
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, problem.New(problem.Usage, "the backup cannot be written: this is not a regular file").At(part).
			Because(err).Try("remove it")
	}
	if err := host.Flock(f, host.Exclusive); err != nil {
		f.Close()
		return nil, problem.New(problem.Locked, "another orrery is writing this backup").At(part).
			Try("wait for it, or end that process")
	}
	a := &Archive{path: path, file: f, index: newIndex(), at: map[Digest]span{}}
	// Keep the complete members. What follows them was being written.
	_ = a.scan(context.Background(), a.check, func(int64) {})
	if a.id != "" { // it was complete except for its name; the new backup may contain more
		a.end, a.id = a.cut, ""
	}
	if err = f.Truncate(a.end); err == nil && a.end == 0 {
		err = a.append(markName, mark())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return a, nil
}

// Where returns the path of the file.
func (a *Archive) Where() string { return a.path }

// Close closes the file. An incomplete archive stays under its other name.
func (a *Archive) Close() error { return a.file.Close() }

func (a *Archive) pieceIndex() *index { return a.index }

// IsIntact returns true: WriteArchive has verified all blocks in the archive.
func (a *Archive) IsIntact(Digest) bool { return true }

// header returns the header of a member. There is only one valid header for a name and size.
func header(name string, size int64) ([]byte, error) {
	var b bytes.Buffer
	h := &tar.Header{Name: name, Size: size, Mode: 0o600, Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0),
		Format: tar.FormatUSTAR}
	if size >= 1<<33 { // more than fits into eight octal digits
		h.Format = tar.FormatGNU
	}
	err := tar.NewWriter(&b).WriteHeader(h)
	return b.Bytes(), err
}

func padding(size int64) int64 { return (tarBlock - size%tarBlock) % tarBlock }

func (a *Archive) append(name string, content []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	whole, err := header(name, int64(len(content)))
	if err != nil {
		return err
	}
	at := a.end
	for _, part := range [][]byte{whole, content, make([]byte, padding(int64(len(content))))} {
		if _, err := a.file.WriteAt(part, at); err != nil {
			return writeProblem(a.path, err)
		}
		at += int64(len(part))
	}
	// Let the disk start writing now, because the user waits for it at the end.
	_ = unix.SyncFileRange(int(a.file.Fd()), a.end, at-a.end, unix.SYNC_FILE_RANGE_WRITE)
	a.end = at
	return nil
}

func (a *Archive) put(name Digest, block []byte) error {
	if err := a.append(blockName(name), block); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	size := int64(len(block))
	a.at[name] = span{a.end - padding(size) - size, size}
	return nil
}

// Commit completes the archive, waits until it is on disk, and then renames it to its final name.
func (a *Archive) Commit(m *Manifest) (string, error) {
	text, id, err := encodeManifest(m)
	if err != nil {
		return "", err
	}
	if err := a.append("backups/"+id+".json", text); err != nil {
		return "", err
	}
	if _, err := a.file.WriteAt(make([]byte, 2*tarBlock), a.end); err != nil {
		return "", writeProblem(a.path, err)
	}
	if err := a.file.Sync(); err != nil {
		return "", writeProblem(a.path, err)
	}
	a.id, a.text = id, text
	if err := unix.Renameat2(unix.AT_FDCWD, a.path+".part", unix.AT_FDCWD, a.path, unix.RENAME_NOREPLACE); err != nil {
		if !errors.Is(err, unix.EINVAL) { // the file system does not support RENAME_NOREPLACE
			return "", writeProblem(a.path, err)
		}
		if err := os.Rename(a.path+".part", a.path); err != nil {
			return "", writeProblem(a.path, err)
		}
	}
	dir, err := os.Open(filepath.Dir(a.path))
	if err != nil {
		return "", err
	}
	defer dir.Close()
	return id, dir.Sync()
}

func (a *Archive) block(name Digest) ([]byte, error) {
	a.mu.Lock()
	at, ok := a.at[name]
	a.mu.Unlock()
	if !ok {
		return nil, Damaged(a, blockName(name), fs.ErrNotExist)
	}
	stored := make([]byte, at.size)
	if _, err := a.file.ReadAt(stored, at.at); err != nil {
		return nil, Damaged(a, blockName(name), err)
	}
	return stored, nil
}

// Backups returns the name of the only backup.
func (a *Archive) Backups() ([]string, error) { return []string{a.id}, nil }

// Manifest returns the manifest of the backup.
func (a *Archive) Manifest(id string) (*Manifest, error) {
	if id != a.id {
		return nil, problem.New(problem.Usage, "backup %s does not exist", id).At(a.path).
			Try("list them with orrery backup ls %s", a.path)
	}
	return decodeManifest(a, id, a.text)
}

// Verify reads and verifies the whole file.
func (a *Archive) Verify(ctx context.Context, id string, read func(int64)) error {
	m, err := a.Manifest(id)
	if err != nil {
		return err
	}
	again := &Archive{path: a.path, file: a.file, index: newIndex(), at: map[Digest]span{}}
	if err := again.scan(ctx, again.check, read); err != nil {
		return err
	}
	if again.id != id {
		return Damaged(a, "its manifest", errDigest)
	}
	_, err = usedBlocks(again, m)
	return err
}

// A member is a file in the archive.
type member struct {
	name     string
	at, size int64
}

// scan reads the archive from a.end on. It stops at the first invalid member, and leaves a.end in
// front of it.
func (a *Archive) scan(ctx context.Context, visit func(member) error, read func(int64)) error {
	info, err := a.file.Stat()
	if err != nil {
		return err
	}
	raw := make([]byte, tarBlock)
	for a.end < info.Size() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if a.id != "" { // only the end of the archive may follow the manifest
			break
		}
		if _, err := a.file.ReadAt(raw, a.end); err != nil {
			return Damaged(a, "its end", errTruncated)
		}
		m, err := a.member(raw)
		if err != nil {
			return err
		}
		if m.size > info.Size()-m.at-padding(m.size) {
			return Damaged(a, m.name, errTruncated)
		}
		next := m.at + m.size + padding(m.size)
		if err := visit(m); err != nil {
			return err
		}
		read(next - a.end)
		if a.id != "" {
			a.cut = a.end
		}
		a.end = next
	}
	if a.id != "" {
		return a.ends(info.Size())
	}
	return nil
}

// member parses a header, which must be as header writes it.
func (a *Archive) member(raw []byte) (member, error) {
	h, err := tar.NewReader(bytes.NewReader(raw)).Next()
	if err != nil {
		return member{}, Damaged(a, "the header at byte "+strconv.FormatInt(a.end, 10),
			errors.New("it is not a header of a backup"))
	}
	want, err := header(h.Name, h.Size)
	first := a.end == 0
	if err != nil || !bytes.Equal(want, raw) || first != (h.Name == markName) {
		return member{}, Damaged(a, "the header at byte "+strconv.FormatInt(a.end, 10),
			errors.New("it is not a header of a backup"))
	}
	m := member{h.Name, a.end + tarBlock, h.Size}
	_, isBlock, err := a.named(m)
	most := int64(MaxManifestBytes)
	if isBlock {
		most = maxBlockBytes
	}
	if err == nil && (m.size < 0 || m.size > most) {
		err = Damaged(a, m.name, ErrBounds)
	}
	return m, err
}

// ends returns an error unless the archive ends right after the manifest.
func (a *Archive) ends(size int64) error {
	rest := make([]byte, 2*tarBlock)
	if _, err := a.file.ReadAt(rest, a.end); err != nil {
		return Damaged(a, "its end", errTruncated)
	}
	if size-a.end != int64(len(rest)) || !zero(rest) {
		return Damaged(a, "its end", errors.New("unexpected data follows the manifest"))
	}
	return nil
}

func zero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// look records a member without reading blocks.
func (a *Archive) look(m member) error {
	block, isBlock, err := a.named(m)
	if err != nil {
		return err
	}
	if !isBlock {
		return a.check(m)
	}
	first := make([]byte, 8)
	if _, err := a.file.ReadAt(first, m.at); err != nil {
		return Damaged(a, m.name, err)
	}
	size, err := headSize(first)
	if err != nil || int64(size) > m.size {
		return Damaged(a, m.name, errBlock)
	}
	head := make([]byte, size)
	if _, err := a.file.ReadAt(head, m.at); err != nil {
		return Damaged(a, m.name, err)
	}
	pieces, err := piecesOf(head)
	if err != nil {
		return Damaged(a, m.name, err)
	}
	return a.note(block, m, pieces)
}

// check reads a member and verifies it by its name.
func (a *Archive) check(m member) error {
	block, isBlock, err := a.named(m)
	if err != nil {
		return err
	}
	content := make([]byte, m.size+padding(m.size))
	if _, err := a.file.ReadAt(content, m.at); err != nil && !errors.Is(err, io.EOF) {
		return Damaged(a, m.name, err)
	}
	if !zero(content[m.size:]) {
		return Damaged(a, m.name, errors.New("the padding after it is not zero"))
	}
	content = content[:m.size]
	switch {
	case isBlock:
		if digestOf(content) != block {
			return Damaged(a, a.damagedName(block, content), errDigest)
		}
		pieces, err := piecesOf(content)
		if err != nil {
			return Damaged(a, m.name, err)
		}
		return a.note(block, m, pieces)
	case m.name == markName:
		if !bytes.Equal(content, mark()) {
			return problem.New(problem.Unable, "this is not a backup, or it has another format").At(a.path).
				Try("use the version of Orrery that wrote it")
		}
	default:
		a.id, a.text = strings.TrimSuffix(strings.TrimPrefix(m.name, "backups/"), ".json"), content
		if _, err := decodeManifest(a, a.id, content); err != nil {
			a.id = ""
			return err
		}
	}
	return nil
}

// damagedName returns the name of a damaged block and a file that uses it, if the rest of the archive is
// readable.
func (a *Archive) damagedName(block Digest, content []byte) string {
	whole, err := OpenArchive(a.path)
	if err != nil {
		return blockName(block)
	}
	defer whole.Close() //nolint:errcheck // it was only read
	if pieces, err := piecesOf(content); err == nil {
		_ = whole.index.add(block, pieces) // without it, less can be reported
	}
	m, _ := whole.Manifest(whole.id)
	return damagedName(whole, m, block)
}

func (a *Archive) note(block Digest, m member, pieces []piece) error {
	a.at[block] = span{m.at, m.size}
	if err := a.index.add(block, pieces); err != nil {
		return Damaged(a, m.name, err)
	}
	return nil
}

// named returns what kind of member has this name, or an error if there is none.
func (a *Archive) named(m member) (block Digest, isBlock bool, err error) {
	if m.name == markName {
		return block, false, nil
	}
	if id, ok := strings.CutPrefix(m.name, "backups/"); ok && isManifest(id) {
		return block, false, nil
	}
	base := filepath.Base(m.name)
	if block.UnmarshalText([]byte(strings.TrimSuffix(base, ".zst"))) == nil && blockName(block) == m.name {
		return block, true, nil
	}
	return block, false, Damaged(a, m.name, errors.New("backups contain no file with this name"))
}
