package volume

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A Copying is a clone of a tree in which somebody writes, under way: most of it has been copied, and when the writers stand still
// it is brought up to date.
//
// What has changed is told by the time of the last change of each inode (ctime), which, other than that of its content, no
// program can set back. Two things could hide a change from it, and are seen to: times are only as fine as a tick of the kernel, so what
// changed just before it was looked at is taken to have changed since; and a page that is mapped into memory gets a new
// time only when it is first written after it was on disk, so all is written to disk first.
type Copying struct {
	How      How
	from, to string
	before   tree  // the source as it was before it was copied last
	copied   tree  // the copy
	doubtful int64 // what changed since then, may have changed again
}

// tick is longer than those of any kernel.
const tick = 20 * time.Millisecond

// Begin copies what can be copied while it changes. The directory above `to` must be there, and `to` not.
func Begin(ctx context.Context, from, to string) (*Copying, error) {
	c := &Copying{How: howTo(from, filepath.Dir(to)), from: from, to: to}
	switch c.How {
	case Subvolume:
		return c, Sync(from) // so that nothing is to be written while nodes stand still
	case Reflink:
		return c, c.share(ctx)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return nil, err
	}
	const rounds, fewEnough = 3, 8 << 20
	for range rounds {
		size, err := c.round(ctx, true)
		if err != nil {
			return nil, err
		}
		if size < fewEnough {
			break
		}
	}
	return c, nil
}

// share clones all files as they are. Should some vanish meanwhile, all is left to be done while the nodes stand still.
func (c *Copying) share(ctx context.Context) error {
	looked := time.Now().Add(-tick).UnixNano()
	if err := Sync(c.from); err != nil {
		return err
	}
	source, err := look(c.from)
	if err != nil {
		return err
	}
	if copyTree(ctx, c.from, c.to) != nil {
		return Erase(c.to)
	}
	c.before, c.doubtful = source, looked
	c.copied, err = look(c.to)
	return err
}

// Finish completes the clone. Nobody may write into the tree meanwhile.
func (c *Copying) Finish(ctx context.Context) error {
	switch {
	case c.How == Subvolume:
		return snapshot(ctx, c.from, c.to)
	case c.before == nil:
		return copyTree(ctx, c.from, c.to)
	}
	_, err := c.round(ctx, false)
	return err
}

// round makes the copy as the source is at this moment, and gives how much it had to copy.
func (c *Copying) round(ctx context.Context, live bool) (size int64, err error) {
	looked := time.Now().Add(-tick).UnixNano()
	if live {
		if err := Sync(c.from); err != nil {
			return 0, err
		}
	}
	source, err := look(c.from)
	if err != nil {
		return 0, err
	}
	d := compare(source, c.before, c.copied, c.doubtful)
	for _, path := range d.gone {
		if err := os.RemoveAll(filepath.Join(c.to, path)); err != nil {
			return 0, err
		}
	}
	rest := d.changed
	if c.How == Reflink {
		if rest, err = c.shareLarge(ctx, source, d.changed); err != nil {
			return 0, err
		}
	}
	if err := transfer(ctx, c.from, c.to, rest, live); err != nil {
		return 0, err
	}
	if live {
		c.before, c.doubtful = source, looked
		c.copied, err = look(c.to)
	}
	return d.size, err
}

// large is a file that is cloned by itself rather than copied with all others that have changed.
const large = 1 << 20

// shareLarge clones the large ones among files that have changed, and gives the others: the directories above them are among these, and get
// their times last.
func (c *Copying) shareLarge(ctx context.Context, source tree, changed []string) (rest []string, err error) {
	for _, path := range changed {
		if e := source[path]; e.mode&unix.S_IFMT != unix.S_IFREG || e.links > 1 || e.size < large {
			rest = append(rest, path)
			continue
		}
		to := filepath.Join(c.to, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return nil, err
		}
		if err := os.RemoveAll(to); err != nil {
			return nil, err
		}
		if err := copyTree(ctx, filepath.Join(c.from, path), to); err != nil {
			return nil, err
		}
	}
	return rest, nil
}
