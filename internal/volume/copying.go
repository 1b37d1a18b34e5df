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

// A Copying is a clone in progress, of a tree in which processes write. Most of the tree is copied
// first, and the clone is updated when the writers are frozen.
//
// Changes are detected by the ctime of each inode, which no program can set back, unlike mtime. Two
// things could hide a change, and both are handled. Times are only as fine as a tick of the kernel,
// so a file that changed just before it was examined is assumed to have changed since. A page that
// is mapped into memory updates the time only on the first write after it was written to disk. So
// everything is written to disk first.
type Copying struct {
	// Left lists what cannot be copied: devices, and trees beyond the limits. The rest is copied
	// anyway, so that a process that makes such files cannot prevent a copy.
	CopyResult

	from, to       string
	source, copied *tree.Root
	top            *copiedEntry // content of the copy
	doubtful       int64        // files changed since then may have changed after they were copied
	rounds         int
	unshared       map[uint64]bool // devices whose files cannot share blocks with the copy
	shared         bool            // at least one file shares blocks
}

// tick is longer than a tick of any kernel.
const tick = 20 * time.Millisecond

// bounds limit what is copied of a tree.
var bounds = tree.DefaultBounds

// StartCopy copies what can be copied while the tree changes. The parent directory of `to` must
// exist, and `to` must not. The caller must call Close.
func StartCopy(ctx context.Context, from, to string) (*Copying, error) {
	from, err := filepath.EvalSymlinks(from) // the user chooses where a volume is, so links are followed
	if err != nil {
		return nil, err
	}
	c := &Copying{from: from, to: to, unshared: map[uint64]bool{}}
	if canSnapshot(from, filepath.Dir(to)) {
		c.Method = Subvolume
		return c, Sync(from) // so that little must be written while nodes are frozen
	}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	const maxPasses, maxRemainingBytes = 3, 8 << 20
	for range maxPasses {
		size, err := c.update(ctx)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		if size < maxRemainingBytes {
			break
		}
	}
	c.recordMethod()
	return c, nil
}

// open opens the source and makes the empty copy.
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

// Close closes both trees.
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

// update updates the copy while the source changes, and returns how many bytes it copied.
func (c *Copying) update(ctx context.Context) (int64, error) {
	looked := time.Now().Add(-tick).UnixNano()
	if err := Sync(c.from); err != nil {
		return 0, err
	}
	size, err := c.round(ctx, round{})
	c.doubtful = looked
	return size, err
}

// Finish completes the clone. No process may write into the tree during the call.
func (c *Copying) Finish(ctx context.Context) error {
	if c.Method == Subvolume {
		return c.finishSubvolume(ctx)
	}
	if err := c.checkSource(); err != nil {
		return err
	}
	// Sharing the blocks of a file that is not yet on disk takes as long as writing it. So small
	// files are copied instead.
	_, err := c.round(ctx, round{still: true, least: 1 << 20})
	c.recordMethod()
	return err
}

// finishSubvolume makes the snapshot. A snapshot leaves out nested subvolumes, which the writers
// may have made since StartCopy checked that there were none.
func (c *Copying) finishSubvolume(ctx context.Context) error {
	if inside, ok := subvolumesIn(c.from); !ok || inside > 0 {
		c.Skipped = append(c.Skipped, "btrfs subvolumes that were created in it during the copy")
	}
	return snapshot(ctx, c.from, c.to)
}

// checkSource returns an error if the source is no longer at its path. A removed tree still exists for
// processes that have it open.
func (c *Copying) checkSource() error {
	var current, opened unix.Stat_t
	if err := unix.Fstat(c.source.Fd(), &opened); err != nil {
		return &os.PathError{Op: "stat", Path: c.from, Err: err}
	}
	if err := unix.Lstat(c.from, &current); err != nil {
		return &os.PathError{Op: "stat", Path: c.from, Err: err}
	}
	if current.Dev != opened.Dev || current.Ino != opened.Ino {
		return fmt.Errorf("%s was replaced during the copy", c.from)
	}
	return nil
}

// recordMethod records how the tree was cloned.
func (c *Copying) recordMethod() {
	c.Method = Copied
	if c.shared {
		c.Method = Reflink
	}
}

// recordSkipped records what is not in the copy. It names the first ones and counts the others.
func (r *round) recordSkipped(at, why string) {
	const maxListed = 10
	r.left++
	switch {
	case r.left <= maxListed:
		r.Skipped = append(r.Skipped, fmt.Sprintf("%s: %s", tree.DisplayPath(at), why))
	case r.left == maxListed+1:
		r.Skipped = append(r.Skipped, "and 1 more")
	default:
		r.Skipped[maxListed] = fmt.Sprintf("and %d more", r.left-maxListed)
	}
}
