package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// A Copying is a clone of a tree in which somebody writes, under way: most of it has been copied,
// and when the writers stand still it is brought up to date.
//
// What has changed is told by the time of the last change of each inode (ctime), which, other than
// that of its content, no program can set back. Two things could hide a change from it, and are
// seen to: times are only as fine as a tick of the kernel, so what changed just before it was
// looked at is taken to have changed since; and a page that is mapped into memory gets a new time
// only when it is first written after it was on disk, so all is written to disk first.
type Copying struct {
	// Left is what no copy can hold: devices, and trees beyond all bounds. A writer who makes some is
	// no reason to copy nothing at all.
	Made

	from, to       string
	source, copied *tree.Root
	top            *known // what the copy holds
	doubtful       int64  // what changed since then, may have changed after it was copied
	rounds         int
	unshared       map[uint64]bool // devices of which files cannot share blocks with the copy
	shared         bool            // a file does
}

// tick is longer than those of any kernel.
const tick = 20 * time.Millisecond

// bounds are what is copied of a tree at most.
var bounds = tree.Ample

// Begin copies what can be copied while it changes. The directory above `to` must be there, and
// `to` not. Whoever begins also closes.
func Begin(ctx context.Context, from, to string) (*Copying, error) {
	from, err := filepath.EvalSymlinks(from) // it is the operator's who says where a volume is
	if err != nil {
		return nil, err
	}
	c := &Copying{from: from, to: to, unshared: map[uint64]bool{}}
	if canSnapshot(from, filepath.Dir(to)) {
		c.How = Subvolume
		return c, Sync(from) // so that nothing is to be written while nodes stand still
	}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	const most, fewEnough = 3, 8 << 20
	for range most {
		size, err := c.live(ctx)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		if size < fewEnough {
			break
		}
	}
	c.tell()
	return c, nil
}

// open opens the source and makes the copy, empty.
func (c *Copying) open() (err error) {
	if c.source, err = tree.Open(c.from); err != nil {
		return err
	}
	if err := os.Mkdir(c.to, 0o700); err != nil {
		return err
	}
	c.copied, err = tree.Open(c.to)
	return err
}

// Close lets go of the trees.
func (c *Copying) Close() error {
	var err error
	for _, root := range []*tree.Root{c.source, c.copied} {
		if root != nil {
			err = errors.Join(err, root.Close())
		}
	}
	c.source, c.copied = nil, nil
	return err
}

// live brings the copy up to date with a source that changes meanwhile, and returns how much had to be copied.
func (c *Copying) live(ctx context.Context) (int64, error) {
	looked := time.Now().Add(-tick).UnixNano()
	if err := Sync(c.from); err != nil {
		return 0, err
	}
	size, err := c.round(ctx, round{})
	c.doubtful = looked
	return size, err
}

// Finish completes the clone. Nobody may write into the tree meanwhile.
func (c *Copying) Finish(ctx context.Context) error {
	if c.How == Subvolume {
		return c.finishSubvolume(ctx)
	}
	if err := c.there(); err != nil {
		return err
	}
	// To share the blocks of a file that is not on disk yet takes as long as to write it, so small
	// ones are rather copied.
	_, err := c.round(ctx, round{still: true, least: 1 << 20})
	c.tell()
	return err
}

// finishSubvolume makes the snapshot. It leaves out subvolumes inside, which the writers may have
// made since it was seen that there are none.
func (c *Copying) finishSubvolume(ctx context.Context) error {
	if inside, ok := subvolumesIn(c.from); !ok || inside > 0 {
		c.Left = append(c.Left, "subvolumes of btrfs that were made in it meanwhile")
	}
	return snapshot(ctx, c.from, c.to)
}

// there wants the source to be where it was: what was removed is still there for those who have it open.
func (c *Copying) there() error {
	var current, opened unix.Stat_t
	if err := unix.Fstat(c.source.Fd(), &opened); err != nil {
		return &os.PathError{Op: "look at", Path: c.from, Err: err}
	}
	if err := unix.Lstat(c.from, &current); err != nil {
		return &os.PathError{Op: "look at", Path: c.from, Err: err}
	}
	if current.Dev != opened.Dev || current.Ino != opened.Ino {
		return fmt.Errorf("%s was replaced while it was copied", c.from)
	}
	return nil
}

// tell says how it was cloned.
func (c *Copying) tell() {
	c.How = Copied
	if c.shared {
		c.How = Reflink
	}
}

// leave notes what is not in the copy. Of many, the first are named.
func (r *round) leave(at, why string) {
	const most = 10
	r.left++
	switch {
	case r.left <= most:
		r.Left = append(r.Left, fmt.Sprintf("%s: %s", tree.Shorten(at), why))
	case r.left == most+1:
		r.Left = append(r.Left, "and 1 more")
	default:
		r.Left[most] = fmt.Sprintf("and %d more", r.left-most)
	}
}
