package treesync

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/jsonlimit"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A Store is a directory in which trees arrive.
type Store struct{ Dir string }

// A Record is what is known of them.
type Record struct {
	Name  string `json:"name"`
	ID    int    `json:"id"`
	From  string `json:"from"`
	Sum   string `json:"sum,omitempty"` // "": they are being changed, and nobody knows what there is
	Whole bool   `json:"whole,omitempty"`
}

const recordFile = "arrival.json"

// Read gives the record. If there is none, that is fs.ErrNotExist.
func (s Store) Read() (Record, error) { return host.ReadJSON[Record](filepath.Join(s.Dir, recordFile)) }

// Write writes it, safe against a power cut.
func (s Store) Write(r Record) error {
	return host.WriteJSON(filepath.Join(s.Dir, recordFile), 0o600, r)
}

// Tree gives where a tree arrives.
func (s Store) Tree(name string) string { return filepath.Join(s.Dir, "trees", name) }

// Files gives what is in the small files of a tree that is one directory of such, by their names; whatever else is there is nothing.
func (s Store) Files(name string) (map[string][]byte, error) {
	const mostFiles, mostBytes = 100, 64 << 10
	root, err := open(s.Tree(name))
	if root == nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	names, err := root.Names(".", mostFiles)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, name := range names {
		st, err := root.Lstat(name)
		if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || !tree.Legal(name) || strings.HasPrefix(name, ".") {
			continue
		}
		if all[name], err = root.ReadFile(name, mostBytes); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Drop removes all of it.
func (s Store) Drop() error { return tree.RemoveAll(s.Dir) }

// Receive takes in what comes along a stream for a node, until that ends. Name tells which trees may come.
func (s Store) Receive(way io.ReadWriter, of Record, named func(tree string) bool) error {
	if err := os.MkdirAll(filepath.Dir(s.Dir), 0o700); err != nil {
		return err
	}
	r, err := s.Read()
	if err != nil || r.Name != of.Name || r.From != of.From || r.ID != of.ID {
		r = of
		r.Sum, r.Whole = "", false
	}
	l := newLine(way)
	if err := l.tell(begins, at{r.Sum}); err != nil {
		return err
	}
	for {
		t := &taking{store: s, line: l, record: &r, named: named}
		err := t.round()
		t.close()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// taking is one round as it arrives.
type taking struct {
	store  Store
	line   *line
	record *Record
	named  func(tree string) bool

	budget int64 // bytes that may still come
	paths  int
	root   *tree.Root
	amend  *tree.Amender
	file   *os.File
	is     entry // of the file
	end    int64 // of what of it may be written
}

func (t *taking) close() {
	if t.file != nil {
		t.file.Close() //nolint:errcheck // it is not complete
		t.file = nil
	}
	if t.amend != nil {
		t.amend.Close()
		t.root.Close() //nolint:errcheck // it was only gone through
		t.amend = nil
	}
}

// slack is how much more than was announced may come: files grow while they are sent.
const slack = 64 << 20

func (t *taking) round() error {
	var s start
	l := t.line
	l.sum.Reset()
	base := t.record.Sum
	kind, b, err := l.next()
	if err != nil {
		return err
	}
	if kind != begins || jsonlimit.Unmarshal(b, &s) != nil || s.Bytes < 0 || s.Base != "" && s.Base != base {
		return errForm
	}
	t.record.Sum, t.record.Whole = "", false
	if s.Base == "" {
		if err := t.store.Drop(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(t.store.Dir, 0o700); err != nil {
		return err
	}
	if err := t.store.Write(*t.record); err != nil {
		return err
	}
	free, err := room(t.store.Dir)
	if err != nil {
		return err
	}
	if s.Base == "" && s.Bytes > free {
		return problem.New(problem.Unable, "there are %d MiB to come, and the disk has room for %d MiB", s.Bytes>>20, max(free, 0)>>20).At(t.store.Dir).Try("make room there, or move the node elsewhere")
	}
	t.budget = min(free, s.Bytes+s.Bytes/4+slack)
	l.restart(s.Base) // as the sender has it
	l.add(begins, b)
	for {
		kind, b, err := l.next()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if kind == ends {
			return t.finish(b)
		}
		if err := t.take(kind, b); err != nil {
			return err
		}
	}
}

// finish brings all to disk, and takes down what there is.
func (t *taking) finish(b []byte) error {
	var e end
	if jsonlimit.Unmarshal(b, &e) != nil || t.file != nil {
		return errForm
	}
	sum := t.line.said()
	t.close()
	if err := t.sync(); err != nil {
		return err
	}
	t.record.Sum, t.record.Whole = sum, e.Whole
	if err := t.store.Write(*t.record); err != nil {
		return err
	}
	return t.line.tell(ends, at{sum})
}

func (t *taking) sync() error {
	dir, err := os.Open(t.store.Dir)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	return os.NewSyscallError("syncfs", unix.Syncfs(int(dir.Fd())))
}

func (t *taking) take(kind byte, b []byte) error {
	if kind == inTree {
		return t.tree(string(b))
	}
	if t.amend == nil {
		return errForm
	}
	switch kind {
	case content, cleared:
		return t.fill(kind, b)
	case gone:
		if t.file != nil {
			return errForm
		}
		return t.amend.Remove(string(b))
	}
	var e entry
	if jsonlimit.Unmarshal(b, &e) != nil || e.Check() != nil || (t.file != nil) != (kind == closed) {
		return errForm
	}
	if t.paths++; t.paths > tree.Ample.All {
		return tree.ErrTooLarge
	}
	if t.budget -= 512; t.budget < 0 {
		return t.tooMuch()
	}
	switch kind {
	case entered:
		return t.amend.Enter(string(e.Name))
	case left:
		if !e.IsDir() {
			return errForm
		}
		return t.amend.Leave(e.Made(Carried))
	case other:
		return t.amend.Make(e.Made(Carried))
	case linked:
		return t.amend.Link(string(e.Same), string(e.Name))
	case opened:
		return t.open(e)
	case closed:
		return t.shut(e)
	}
	return errForm
}

func (t *taking) tooMuch() error {
	return problem.New(problem.Failed, "more comes than was announced, or than the disk has room for").At(t.store.Dir).Try("make room there, and move the node again")
}

func (t *taking) tree(name string) error {
	if t.file != nil || !legal(name) || !t.named(name) {
		return errForm
	}
	t.close()
	dir := t.store.Tree(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var err error
	if t.root, err = tree.Open(dir); err != nil {
		return err
	}
	t.amend = tree.Amend(t.root, func(string) {})
	return nil
}

func (t *taking) open(e entry) (err error) {
	if !e.IsFile() {
		return errForm
	}
	t.is, t.end = e, e.Size
	t.file, err = t.amend.File(string(e.Name), e.Patch)
	return err
}

func (t *taking) fill(kind byte, b []byte) error {
	if t.file == nil || len(b) < 8 {
		return errForm
	}
	from := int64(binary.BigEndian.Uint64(b)) //nolint:gosec // what is negative is refused
	b = b[8:]
	if kind == cleared {
		if len(b) != 8 {
			return errForm
		}
		size := int64(binary.BigEndian.Uint64(b)) //nolint:gosec // what is negative is refused
		if from < 0 || size <= 0 || from > t.end || size > t.end-from {
			return errForm
		}
		return unix.Fallocate(int(t.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, size)
	}
	if from < 0 || from > t.end || int64(len(b)) > t.end-from {
		return errForm
	}
	if t.budget -= int64(len(b)); t.budget < 0 {
		return t.tooMuch()
	}
	_, err := t.file.WriteAt(b, from)
	return err
}

func (t *taking) shut(e entry) error {
	if e.Name != t.is.Name || e.Size != t.is.Size || e.Mode != t.is.Mode {
		return errForm
	}
	f := t.file
	t.file = nil
	err := f.Truncate(e.Size)
	if bad := f.Close(); err == nil {
		err = bad
	}
	if err != nil {
		return err
	}
	return t.amend.Dress(e.Made(Carried))
}

// All gives the stores below a directory, by the numbers that they are called.
func All(dir string) (all []Record, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		r, bad := Store{filepath.Join(dir, e.Name())}.Read()
		if bad != nil || fmt.Sprint(r.ID) != e.Name() {
			continue // nothing has come yet, and who receives or sweeps removes it
		}
		all = append(all, r)
	}
	return all, err
}
