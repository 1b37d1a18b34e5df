package treesync

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// A Source is a tree to send, and its name at the receiver.
type Source struct {
	Name string
	Dir  string // a missing directory counts as empty

	Without []string               // paths that are not sent
	Only    func(path string) bool // if set, selects the files to send; besides them, only directories are sent
	File    string                 // if set, the only file to send; the rest of Dir is not read
}

// A Sender sends trees to one other host and remembers what it has sent.
type Sender struct {
	sum   string // digest of everything the receiver has
	trees map[string]*fileState
}

// A fileState is a path as it was last sent.
type fileState struct {
	state  state
	inside map[string]*fileState
	seen   bool
	sums   map[int64]blockSum // digests of the blocks of a large file, except for holes
	kept   bool               // the receiver has listed it; nothing else is known about it
}

type state struct {
	ino, links      uint64
	mode, uid, gid  uint32
	rdev            uint64
	size            int64
	modified, since int64
}

func stateOf(st *unix.Stat_t) state {
	s := state{
		links: uint64(st.Nlink), //nolint:unconvert // 32 bits on some machines
		ino:   st.Ino, mode: st.Mode, uid: st.Uid, gid: st.Gid, rdev: st.Rdev, size: st.Size,
		modified: st.Mtim.Nano(), since: st.Ctim.Nano(),
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		s.size, s.links = 0, 0
	}
	return s
}

// settleTime is how old the last change of a file must be so that a later change is certain to have
// another timestamp.
const settleTime = 50 * time.Millisecond

// minPatchSize is the minimum size of a file of which only changed blocks are sent.
const minPatchSize = 1 << 20

// A Pass is the result of a pass.
type Pass struct {
	Files int
	Bytes int64
	Took  time.Duration
	Sum   string   // digest of everything the receiver has
	Left  []string // what was not sent, and why
}

// Send sends what has changed since the last pass. Still means that the trees do not change any
// more.
func (s *Sender) Send(ctx context.Context, to *Stream, sources []Source, still bool) (*Pass, error) {
	if s.sum != to.has.Sum {
		s.sum, s.trees = "", nil
	}
	r := &pass{Sender: s, ctx: ctx, conn: to.conn, kept: to.has.Kept, still: still, buffer: make([]byte, blockSize)}
	began := time.Now()
	if err := r.run(sources); err != nil {
		s.sum, s.trees = "", nil // what the receiver has is unknown
		return nil, err
	}
	r.Took, r.Sum, to.has.Sum = time.Since(began), s.sum, s.sum
	return &r.Pass, nil
}

// SendOnce sends trees that do not change, in one pass.
func SendOnce(ctx context.Context, rw io.ReadWriter, sources ...Source) (*Pass, error) {
	to, err := NewStream(rw)
	if err != nil {
		return nil, err
	}
	return new(Sender).Send(ctx, to, sources, true)
}

// A Stream is a connection to a Receiver.
type Stream struct {
	conn *conn
	has  progress
}

// NewStream opens a stream to a Receiver.
func NewStream(rw io.ReadWriter) (*Stream, error) {
	s := &Stream{conn: newConn(rw)}
	return s, s.conn.readJSON(passStart, &s.has)
}

type pass struct {
	Pass
	*Sender
	ctx    context.Context
	conn   *conn
	kept   bool // the receiver has a part of the trees
	still  bool
	buffer []byte

	stack  []*level
	first  map[uint64]*hardLink
	source *Source
}

// A hardLink is the first name of a file that has several names.
type hardLink struct {
	name  Name
	fresh bool // it was sent in this pass
}

// A level is a directory on the way to the current path of the walk.
type level struct {
	name    string
	state   *fileState
	changed bool
	entered bool
	entry   entry
}

func (r *pass) run(sources []Source) error {
	if err := r.begin(sources); err != nil {
		return err
	}
	existing := map[string]bool{}
	for _, s := range sources {
		var err error
		if existing[s.Name], err = r.tree(s); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	for name := range r.trees {
		if existing[name] {
			continue
		}
		delete(r.trees, name)
		if err := r.conn.frame(treeGone, []byte(name)); err != nil {
			return err
		}
	}
	if err := r.conn.writeJSON(passEnd, end{Whole: r.still}); err != nil {
		return err
	}
	sum := r.conn.digest()
	var received progress
	if err := r.conn.readJSON(passEnd, &received); err != nil {
		return err
	}
	if received.Sum != sum {
		return errors.New("the other host did not receive what was sent")
	}
	r.sum = sum
	return nil
}

func (r *pass) begin(sources []Source) error {
	s := start{Nonce: rand.Text()}
	if r.sum != "" && r.trees != nil {
		s.Base = r.sum
	} else {
		r.trees = map[string]*fileState{}
		s.Resume = r.kept
	}
	for _, source := range sources {
		bytes, err := source.measure(r.ctx)
		if err != nil {
			return err
		}
		s.Bytes += bytes
	}
	r.conn.restart(s.Base)
	if err := r.conn.writeJSON(passStart, s); err != nil || !s.Resume {
		return err
	}
	return r.resume(s.Bytes)
}

// measure returns how many bytes the files of a source occupy on disk.
func (s *Source) measure(ctx context.Context) (int64, error) {
	if s.File == "" {
		return measure(ctx, s.Dir, func(*unix.Stat_t) error { return nil })
	}
	root, err := tree.Open(s.Dir)
	if err != nil {
		return 0, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	st, err := tree.StatEntry(root.Fd(), s.File)
	return st.Blocks*512 + 2*entryBytes, err
}

// entryBytes is what a path counts for, in addition to its content.
const entryBytes = 512

// measure returns how many bytes the files of a tree occupy on disk. It calls each for each path.
func measure(ctx context.Context, dir string, each func(st *unix.Stat_t) error) (bytes int64, err error) {
	root, err := open(dir)
	if root == nil {
		return 0, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	err = root.Walk(ctx, tree.DefaultBounds, func(e *tree.Entry) error {
		bytes += e.Stat.Blocks*512 + entryBytes
		return each(&e.Stat)
	})
	return bytes, err
}

// open opens a tree. It returns nil if the tree does not exist.
func open(dir string) (*tree.Root, error) {
	root, err := tree.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return root, err
}

// tree sends a tree and reports whether it exists.
func (r *pass) tree(s Source) (bool, error) {
	root, err := open(s.Dir)
	if root == nil {
		return false, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	if err := r.conn.frame(treeStart, []byte(s.Name)); err != nil {
		return true, err
	}
	if r.trees[s.Name] == nil {
		r.trees[s.Name] = &fileState{inside: map[string]*fileState{}}
	}
	r.first = map[uint64]*hardLink{}
	r.source = &s
	top := r.trees[s.Name]
	r.stack = nil
	if s.File != "" {
		return true, r.oneFile(root, top)
	}
	return true, root.WalkSteps(r.ctx, tree.DefaultBounds, tree.Steps{
		Visit: func(e *tree.Entry) error {
			if e.Path == "." {
				return r.directory(e, top)
			}
			return r.visit(e)
		},
		Leave: r.leave,
	})
}

// oneFile sends a tree with one file.
func (r *pass) oneFile(root *tree.Root, top *fileState) error {
	dir := tree.Entry{Path: ".", Dir: root.Fd(), Name: ".", Inner: root.Fd()}
	if err := unix.Fstat(root.Fd(), &dir.Stat); err != nil {
		return err
	}
	st, err := tree.StatEntry(root.Fd(), r.source.File)
	if err != nil {
		return err
	}
	if err := r.directory(&dir, top); err != nil {
		return err
	}
	if err := r.visit(&tree.Entry{Path: r.source.File, Dir: root.Fd(), Name: r.source.File, Stat: st,
		Inner: -1}); err != nil {
		return err
	}
	return r.leave(&dir)
}

// levelOf returns the parent directory of a path.
func (r *pass) levelOf(name string) *level {
	for len(r.stack) > 1 && r.stack[len(r.stack)-1].name != path.Dir(name) {
		r.stack = r.stack[:len(r.stack)-1]
	}
	return r.stack[len(r.stack)-1]
}

// enter sends that a directory has changes.
func (r *pass) enter(l *level) error {
	if l.entered {
		return nil
	}
	l.entered = true
	return r.conn.writeJSON(dirStart, entry{Entry: Entry{Name: Name(l.name)}})
}

func (r *pass) directory(e *tree.Entry, k *fileState) error {
	current := stateOf(&e.Stat)
	l := &level{name: e.Path, state: k, changed: k.state != current}
	for _, below := range k.inside {
		below.seen = false
	}
	var err error
	if l.changed {
		if l.entry, err = r.entry(e); err != nil {
			return asGone(err)
		}
	}
	fresh := k.state.mode == 0
	r.stack = append(r.stack, l)
	k.state = r.stableState(current, &e.Stat)
	if fresh {
		return r.enter(l)
	}
	return nil
}

// stableState returns the state if it can be compared later. If the file changed too recently, it
// returns a state that equals no other.
func (r *pass) stableState(current state, st *unix.Stat_t) state {
	if !r.still && time.Since(time.Unix(st.Ctim.Unix())) < settleTime {
		current.since = 0
	}
	return current
}

func asGone(err error) error {
	if tree.IsGone(err) {
		return tree.ErrGone
	}
	return err
}

func (r *pass) entry(e *tree.Entry) (entry, error) {
	sent := entry{Entry: NewEntry(e)}
	return sent, sent.Read(e, ContentAttrs)
}

func (r *pass) leave(e *tree.Entry) error {
	l := r.stack[len(r.stack)-1]
	for l.name != e.Path {
		r.stack = r.stack[:len(r.stack)-1]
		l = r.stack[len(r.stack)-1]
	}
	for name, below := range l.state.inside {
		if below.seen {
			continue
		}
		delete(l.state.inside, name)
		if err := r.enter(l); err != nil {
			return err
		}
		if err := r.conn.frame(removed, []byte(path.Join(l.name, name))); err != nil {
			return err
		}
	}
	if !l.changed && !l.entered {
		return nil
	}
	if err := r.enter(l); err != nil { // this also removes attributes that the directory no longer has
		return err
	}
	if !l.changed {
		var err error
		if l.entry, err = r.entry(e); err != nil {
			return asGone(err)
		}
	}
	return r.conn.writeJSON(dirEnd, l.entry)
}

// maxListedPaths is how many paths that were not sent are named.
const maxListedPaths = 10

func (r *pass) visit(e *tree.Entry) error {
	above := r.levelOf(e.Path)
	kind := e.Stat.Mode & unix.S_IFMT
	why := ""
	switch {
	case kind == unix.S_IFSOCK:
		return nil // no process listens on a copied socket
	case r.source.Only != nil && !e.IsDir() && (kind != unix.S_IFREG || !r.source.Only(e.Path)):
		return nil
	case tree.IsDevice(&e.Stat) && !tree.IsWhiteout(&e.Stat):
		why = "a device"
	case above.name == "." && tree.IsTemporary(e.Name) || slices.Contains(r.source.Without, e.Path):
		return nil
	}
	if why != "" {
		if len(r.Left) < maxListedPaths {
			r.Left = append(r.Left, tree.DisplayPath(e.Path)+": "+why)
		}
		return nil
	}
	k := above.state.inside[e.Name]
	current := stateOf(&e.Stat)
	if k != nil && k.state.mode&unix.S_IFMT != kind {
		k = nil
	}
	fresh := k == nil
	if fresh {
		k = &fileState{}
		if e.IsDir() {
			k.inside = map[string]*fileState{}
		}
	}
	if e.IsDir() {
		if fresh {
			if err := r.enter(above); err != nil {
				return err
			}
		}
		above.state.inside[e.Name] = k
		k.seen = true
		return r.directory(e, k)
	}
	var t *hardLink
	if current.links > 1 {
		t = r.first[current.ino]
	}
	same := !fresh && k.state == current
	if same && (t == nil || !t.fresh) {
		k.seen = true
		if current.links > 1 && t == nil {
			r.first[current.ino] = &hardLink{name: Name(e.Path)}
		}
		return nil
	}
	if err := r.enter(above); err != nil {
		return err
	}
	err := r.change(e, k, current, t)
	if tree.IsGone(err) {
		return tree.ErrGone
	}
	if err == nil {
		above.state.inside[e.Name], k.seen = k, true
		r.Files++
	}
	return err
}

func (r *pass) change(e *tree.Entry, k *fileState, current state, t *hardLink) error {
	if t != nil {
		k.state, k.sums = r.stableState(current, &e.Stat), nil
		return r.conn.writeJSON(link, entry{Entry: Entry{Name: Name(e.Path), Same: t.name}})
	}
	if current.links > 1 {
		r.first[current.ino] = &hardLink{Name(e.Path), true}
	}
	if current.mode&unix.S_IFMT == unix.S_IFREG {
		return r.file(e, k)
	}
	sent, err := r.entry(e)
	if err != nil {
		return err
	}
	k.state = r.stableState(current, &e.Stat)
	return r.conn.writeJSON(special, sent)
}
