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
	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/tree"
)

// A Receiver writes trees to a directory.
type Receiver struct {
	Dir string
	// Free returns how many more bytes may be written. If it is nil, the limit is the free space of
	// the file system, less a reserve for others.
	Free func() (int64, error)
}

// A State is the record of what a Receiver has received.
type State struct {
	Name  string `json:"name"`
	ID    int    `json:"id"`
	From  string `json:"from"`
	Sum   string `json:"sum,omitempty"`   // digest of everything received, or "" during a pass
	Whole bool   `json:"whole,omitempty"` // the sender has said that the trees do not change any more
}

const stateFile = "arrival.json"

// Read returns the record, or fs.ErrNotExist if there is none.
func (s Receiver) Read() (State, error) { return host.ReadJSON[State](filepath.Join(s.Dir, stateFile)) }

// Write writes the record so that it survives a power failure.
func (s Receiver) Write(r State) error {
	return host.WriteJSON(filepath.Join(s.Dir, stateFile), 0o600, r)
}

// Tree returns the directory of a received tree.
func (s Receiver) Tree(name string) string { return filepath.Join(s.Dir, "trees", name) }

// Files returns the contents of a tree of small files by their names. It skips everything else.
func (s Receiver) Files(name string) (map[string][]byte, error) {
	const maxFiles, maxBytes = 100, 64 << 10
	root, err := open(s.Tree(name))
	if root == nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	names, err := root.Names(".", maxFiles)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, name := range names {
		st, err := root.Lstat(name)
		if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || !tree.ValidPath(name) || strings.HasPrefix(name, ".") {
			continue
		}
		if all[name], err = root.ReadFile(name, maxBytes); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Remove removes the directory with all trees.
func (s Receiver) Remove() error { return tree.RemoveAll(s.Dir) }

func (s Receiver) free() (int64, error) {
	if s.Free != nil {
		return s.Free()
	}
	return freeBytes(s.Dir)
}

// Receive writes what a Sender sends until the stream ends. Allowed reports whether a tree may be
// received.
func (s Receiver) Receive(rw io.ReadWriter, of State, allowed func(tree string) bool) error {
	if err := os.MkdirAll(filepath.Dir(s.Dir), 0o700); err != nil {
		return err
	}
	r, err := s.Read()
	kept := err == nil && r.Name == of.Name && r.From == of.From && r.ID == of.ID
	if !kept {
		r = of
		r.Sum, r.Whole = "", false
	}
	l := newConn(rw)
	if err := l.writeJSON(passStart, progress{Sum: r.Sum, Kept: kept}); err != nil {
		return err
	}
	for {
		t := &receivePass{to: s, conn: l, record: &r, kept: kept, allowed: allowed}
		err := t.pass()
		t.close()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		kept = true
	}
}

// receivePass is one pass at the receiver.
type receivePass struct {
	to      Receiver
	conn    *conn
	record  *State
	kept    bool // the directory has a part of the same trees
	allowed func(tree string) bool

	bytesLeft int64 // how many more bytes may be received
	paths     int
	root      *tree.Root
	patcher   *tree.Patcher
	file      *os.File
	is        entry // the entry of the file
	end       int64 // the end of the part that may be written
}

func (t *receivePass) close() {
	if t.file != nil {
		t.file.Close() //nolint:errcheck // it is not complete
		t.file = nil
	}
	if t.patcher != nil {
		t.patcher.Close()
		t.root.Close() //nolint:errcheck // it was only gone through
		t.patcher = nil
	}
}

// growthAllowance is how much more than announced may be received, because files grow while they
// are sent.
const growthAllowance = 64 << 20

func (t *receivePass) pass() error {
	var s start
	l := t.conn
	l.sum.Reset()
	kind, b, err := l.next()
	if err != nil {
		return err
	}
	if kind != passStart || jsonlimit.Unmarshal(b, &s) != nil || s.Bytes < 0 || s.Base != "" &&
		(s.Base != t.record.Sum || s.Resume) || s.Resume && !t.kept {
		return errProtocol
	}
	t.record.Sum, t.record.Whole = "", false
	if err := t.prepare(&s); err != nil {
		return err
	}
	l.restart(s.Base) // as the sender does
	l.hashFrame(passStart, b)
	if s.Resume {
		if err := t.list(); err != nil {
			return err
		}
	}
	for {
		kind, b, err := l.next()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if kind == passEnd {
			return t.finish(b)
		}
		if err := t.handleFrame(kind, b); err != nil {
			return err
		}
	}
}

// prepare makes the directory ready for a pass. It removes what cannot be reused and returns an
// error if there is not enough free space.
func (t *receivePass) prepare(s *start) error {
	var keeps int64
	if s.Base == "" {
		var ok bool
		var err error
		if s.Resume {
			if keeps, ok, err = t.receivedBytes(newListLimit(s.Bytes)); err != nil {
				return err
			}
		}
		if !ok {
			if err := t.to.Remove(); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(t.to.Dir, 0o700); err != nil {
		return err
	}
	if err := t.to.Write(*t.record); err != nil {
		return err
	}
	free, err := t.to.free()
	if err != nil {
		return err
	}
	free += keeps
	if s.Base == "" && s.Bytes > free {
		return problem.New(problem.Unable, "%d MiB are needed, %d MiB are free", s.Bytes>>20,
			max(free, 0)>>20).At(t.to.Dir).Try("make room there")
	}
	t.bytesLeft = min(free, s.Bytes+s.Bytes/4+growthAllowance)
	return nil
}

// finish writes everything to disk, and then the record.
func (t *receivePass) finish(b []byte) error {
	var e end
	if jsonlimit.Unmarshal(b, &e) != nil || t.file != nil {
		return errProtocol
	}
	sum := t.conn.digest()
	t.close()
	if err := t.sync(); err != nil {
		return err
	}
	t.record.Sum, t.record.Whole = sum, e.Whole
	if err := t.to.Write(*t.record); err != nil {
		return err
	}
	return t.conn.writeJSON(passEnd, progress{Sum: sum})
}

func (t *receivePass) sync() error {
	dir, err := os.Open(t.to.Dir)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	return os.NewSyscallError("syncfs", unix.Syncfs(int(dir.Fd())))
}

func (t *receivePass) handleFrame(kind byte, b []byte) error {
	switch kind {
	case treeStart:
		return t.tree(string(b))
	case treeGone:
		return t.removeTree(string(b))
	}
	if t.patcher == nil {
		return errProtocol
	}
	switch kind {
	case content, hole:
		return t.writeContent(kind, b)
	case removed:
		if t.file != nil {
			return errProtocol
		}
		return t.patcher.Remove(string(b))
	}
	var e entry
	if jsonlimit.Unmarshal(b, &e) != nil || e.Check() != nil || (t.file != nil) != (kind == fileEnd) {
		return errProtocol
	}
	if t.paths++; t.paths > tree.DefaultBounds.All {
		return tree.ErrTooLarge
	}
	if t.bytesLeft -= 512; t.bytesLeft < 0 {
		return t.tooLargeError()
	}
	switch kind {
	case dirStart:
		return t.patcher.EnterDir(string(e.Name))
	case dirEnd:
		if !e.IsDir() {
			return errProtocol
		}
		return t.patcher.LeaveDir(e.Header(ContentAttrs))
	case special:
		return t.patcher.Create(e.Header(ContentAttrs))
	case link:
		return t.patcher.Link(string(e.Same), string(e.Name))
	case fileStart:
		return t.open(e)
	case fileEnd:
		return t.endFile(e)
	}
	return errProtocol
}

func (t *receivePass) tooLargeError() error {
	return problem.New(problem.Failed, "the other host sends more than it announced, or the disk is full").At(t.to.Dir).
		Try("make room there, and run the same command again")
}

func (t *receivePass) removeTree(name string) error {
	if t.file != nil || !validTree(name) || !t.allowed(name) {
		return errProtocol
	}
	t.close()
	return tree.RemoveAll(t.to.Tree(name))
}

func (t *receivePass) tree(name string) error {
	if t.file != nil || !validTree(name) || !t.allowed(name) {
		return errProtocol
	}
	t.close()
	dir := t.to.Tree(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var err error
	if t.root, err = tree.Open(dir); err != nil {
		return err
	}
	t.patcher = tree.NewPatcher(t.root, func(string) {})
	return nil
}

func (t *receivePass) open(e entry) (err error) {
	if !e.IsFile() {
		return errProtocol
	}
	t.is, t.end = e, e.Size
	t.file, err = t.patcher.OpenFile(string(e.Name), e.Patch)
	return err
}

func (t *receivePass) writeContent(kind byte, b []byte) error {
	if t.file == nil || len(b) < 8 {
		return errProtocol
	}
	from := int64(binary.BigEndian.Uint64(b)) //nolint:gosec // what is negative is refused
	b = b[8:]
	if kind == hole {
		if len(b) != 8 {
			return errProtocol
		}
		size := int64(binary.BigEndian.Uint64(b)) //nolint:gosec // what is negative is refused
		if from < 0 || size <= 0 || from > t.end || size > t.end-from {
			return errProtocol
		}
		return unix.Fallocate(int(t.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, size)
	}
	if from < 0 || from > t.end || int64(len(b)) > t.end-from {
		return errProtocol
	}
	if t.bytesLeft -= int64(len(b)); t.bytesLeft < 0 {
		return t.tooLargeError()
	}
	_, err := t.file.WriteAt(b, from)
	return err
}

func (t *receivePass) endFile(e entry) error {
	if e.Name != t.is.Name || e.Size != t.is.Size || e.Mode != t.is.Mode {
		return errProtocol
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
	return t.patcher.SetMetadata(e.Header(ContentAttrs))
}

// States returns the records of the Receivers in the subdirectories of dir, each of which is named
// by its ID.
func States(dir string) (all []State, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		r, bad := Receiver{Dir: filepath.Join(dir, e.Name())}.Read()
		if bad != nil || fmt.Sprint(r.ID) != e.Name() {
			continue // nothing has been received yet; the next Receive or cleanup removes it
		}
		all = append(all, r)
	}
	return all, err
}
