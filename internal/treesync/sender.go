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

// A Source is a tree that is sent, under a name.
type Source struct {
	Name string
	Dir  string // one that is not there is empty

	Without []string // files that stay behind
}

// A Sender sends trees to one other host, and remembers what it has sent.
type Sender struct {
	sum   string // of all that the other one has
	trees map[string]*known
}

// A known is a path as it was sent.
type known struct {
	state  state
	inside map[string]*known
	met    bool
	sums   map[int64][16]byte // of the pieces of a large file; one that is not there is a hole
}

type state struct {
	ino, links      uint64
	mode, uid, gid  uint32
	rdev            uint64
	size            int64
	modified, since int64
}

func stateOf(st *unix.Stat_t) state {
	is := state{
		ino: st.Ino, links: uint64(st.Nlink), mode: st.Mode, uid: st.Uid, gid: st.Gid, rdev: st.Rdev, size: st.Size, modified: st.Mtim.Nano(), since: st.Ctim.Nano(), //nolint:unconvert // 32 bits on some machines
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		is.size, is.links = 0, 0
	}
	return is
}

// settled is how old the last change of a file must be for its time to tell a later one apart.
const settled = 50 * time.Millisecond

// large is from which size on the pieces of a file are compared, and only those sent that have changed.
const large = 1 << 20

// A Round is how one went.
type Round struct {
	Files int
	Bytes int64
	Took  time.Duration
	Sum   string
	Left  []string // what does not go along, and why
}

// Send sends what has changed since the last time. Still says that nothing changes any more.
func (s *Sender) Send(ctx context.Context, way *Way, sources []Source, still bool) (*Round, error) {
	if s.sum != way.at.Sum {
		s.sum, s.trees = "", nil
	}
	r := &round{Sender: s, ctx: ctx, line: way.line, still: still, buffer: make([]byte, piece)}
	began := time.Now()
	if err := r.run(sources); err != nil {
		s.sum, s.trees = "", nil // nobody knows what the other one has
		return nil, err
	}
	r.Took, r.Sum, way.at.Sum = time.Since(began), s.sum, s.sum
	return &r.Round, nil
}

// A Way is a stream to a Store.
type Way struct {
	line *line
	at   at
}

// Toward begins to send along a stream.
func Toward(rw io.ReadWriter) (*Way, error) {
	w := &Way{line: newLine(rw)}
	return w, w.line.hear(begins, &w.at)
}

type round struct {
	Round
	*Sender
	ctx    context.Context
	line   *line
	still  bool
	buffer []byte

	stack   []*level
	first   map[uint64]*twin
	without []string
}

// A twin is the first name of a file that has several.
type twin struct {
	name  Name
	fresh bool // it was sent in this round
}

// A level is a directory that is gone through.
type level struct {
	name    string
	known   *known
	changed bool
	entered bool
	entry   entry
}

func (r *round) run(sources []Source) error {
	if err := r.begin(sources); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, s := range sources {
		names[s.Name] = true
		if err := r.tree(s); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	if err := r.line.tell(ends, end{Whole: r.still}); err != nil {
		return err
	}
	sum := r.line.said()
	var has at
	if err := r.line.hear(ends, &has); err != nil {
		return err
	}
	if has.Sum != sum {
		return errors.New("the other host has got something else than was sent")
	}
	r.sum = sum
	return nil
}

func (r *round) begin(sources []Source) error {
	s := start{Nonce: rand.Text()}
	if r.sum != "" && r.trees != nil {
		s.Base = r.sum
	} else {
		r.trees = map[string]*known{}
	}
	for _, source := range sources {
		bytes, err := weigh(r.ctx, source.Dir)
		if err != nil {
			return err
		}
		s.Bytes += bytes
	}
	r.line.restart(s.Base)
	return r.line.tell(begins, s)
}

// weigh tells how many bytes the files of a tree have on the disk.
func weigh(ctx context.Context, dir string) (bytes int64, err error) {
	root, err := open(dir)
	if root == nil {
		return 0, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	err = root.Walk(ctx, tree.Ample, func(e *tree.Entry) error {
		bytes += e.Stat.Blocks*512 + 512
		return nil
	})
	return bytes, err
}

// open opens a tree; nil: it is not there.
func open(dir string) (*tree.Root, error) {
	root, err := tree.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return root, err
}

func (r *round) tree(s Source) error {
	root, err := open(s.Dir)
	if root == nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it was only read
	if err := r.line.frame(inTree, []byte(s.Name)); err != nil {
		return err
	}
	if r.trees[s.Name] == nil {
		r.trees[s.Name] = &known{inside: map[string]*known{}}
	}
	r.first = map[uint64]*twin{}
	r.without = s.Without
	top := r.trees[s.Name]
	r.stack = nil
	return root.WalkSteps(r.ctx, tree.Ample, tree.Steps{
		Visit: func(e *tree.Entry) error {
			if e.Path == "." {
				return r.directory(e, top)
			}
			return r.visit(e)
		},
		Leave: r.leave,
	})
}

// in gives the directory that a path is in.
func (r *round) in(name string) *level {
	for len(r.stack) > 1 && r.stack[len(r.stack)-1].name != path.Dir(name) {
		r.stack = r.stack[:len(r.stack)-1]
	}
	return r.stack[len(r.stack)-1]
}

// enter tells that something changes in a directory.
func (r *round) enter(l *level) error {
	if l.entered {
		return nil
	}
	l.entered = true
	return r.line.tell(entered, entry{Entry: Entry{Name: Name(l.name)}})
}

func (r *round) directory(e *tree.Entry, k *known) error {
	is := stateOf(&e.Stat)
	l := &level{name: e.Path, known: k, changed: k.state != is}
	for _, below := range k.inside {
		below.met = false
	}
	var err error
	if l.changed {
		if l.entry, err = r.entry(e); err != nil {
			return vanished(err)
		}
	}
	fresh := k.state.mode == 0
	r.stack = append(r.stack, l)
	k.state = r.sure(is, &e.Stat)
	if fresh {
		return r.enter(l)
	}
	return nil
}

// sure gives a state to which a later one can be compared; one that may change without being seen to is none.
func (r *round) sure(is state, st *unix.Stat_t) state {
	if !r.still && time.Since(time.Unix(st.Ctim.Unix())) < settled {
		is.since = 0
	}
	return is
}

func vanished(err error) error {
	if tree.Vanished(err) {
		return tree.ErrGone
	}
	return err
}

func (r *round) entry(e *tree.Entry) (entry, error) {
	sent := entry{Entry: EntryOf(e)}
	return sent, sent.Read(e, Carried)
}

func (r *round) leave(e *tree.Entry) error {
	l := r.stack[len(r.stack)-1]
	for l.name != e.Path {
		r.stack = r.stack[:len(r.stack)-1]
		l = r.stack[len(r.stack)-1]
	}
	for name, below := range l.known.inside {
		if below.met {
			continue
		}
		delete(l.known.inside, name)
		if err := r.enter(l); err != nil {
			return err
		}
		if err := r.line.frame(gone, []byte(path.Join(l.name, name))); err != nil {
			return err
		}
	}
	if !l.changed && !l.entered {
		return nil
	}
	if !l.changed {
		var err error
		if l.entry, err = r.entry(e); err != nil {
			return vanished(err)
		}
	}
	return r.line.tell(left, l.entry)
}

// most is how many of the things that do not go along are named.
const most = 10

func (r *round) visit(e *tree.Entry) error {
	above := r.in(e.Path)
	kind := e.Stat.Mode & unix.S_IFMT
	why := ""
	switch {
	case kind == unix.S_IFSOCK:
		return nil // nobody listens any more when it comes there
	case tree.Device(&e.Stat) && !tree.Whiteout(&e.Stat):
		why = "a device"
	case above.name == "." && tree.Temporary(e.Name) || slices.Contains(r.without, e.Path):
		return nil
	}
	if why != "" {
		if len(r.Left) < most {
			r.Left = append(r.Left, tree.Shorten(e.Path)+": "+why)
		}
		return nil
	}
	k := above.known.inside[e.Name]
	is := stateOf(&e.Stat)
	if k != nil && k.state.mode&unix.S_IFMT != kind {
		k = nil
	}
	fresh := k == nil
	if fresh {
		k = &known{}
		if e.IsDir() {
			k.inside = map[string]*known{}
		}
	}
	if e.IsDir() {
		if fresh {
			if err := r.enter(above); err != nil {
				return err
			}
		}
		above.known.inside[e.Name] = k
		k.met = true
		return r.directory(e, k)
	}
	var t *twin
	if is.links > 1 {
		t = r.first[is.ino]
	}
	same := !fresh && k.state == is
	if same && (t == nil || !t.fresh) {
		k.met = true
		if is.links > 1 && t == nil {
			r.first[is.ino] = &twin{name: Name(e.Path)}
		}
		return nil
	}
	if err := r.enter(above); err != nil {
		return err
	}
	err := r.change(e, k, is, t)
	if tree.Vanished(err) {
		return tree.ErrGone
	}
	if err == nil {
		above.known.inside[e.Name], k.met = k, true
		r.Files++
	}
	return err
}

func (r *round) change(e *tree.Entry, k *known, is state, t *twin) error {
	if t != nil {
		k.state, k.sums = r.sure(is, &e.Stat), nil
		return r.line.tell(linked, entry{Entry: Entry{Name: Name(e.Path), Same: t.name}})
	}
	if is.links > 1 {
		r.first[is.ino] = &twin{Name(e.Path), true}
	}
	if is.mode&unix.S_IFMT == unix.S_IFREG {
		return r.file(e, k)
	}
	sent, err := r.entry(e)
	if err != nil {
		return err
	}
	k.state = r.sure(is, &e.Stat)
	return r.line.tell(other, sent)
}
