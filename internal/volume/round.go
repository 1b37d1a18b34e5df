package volume

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A round walks the source once and makes the copy match it. All operations go from open directory
// to open directory. So nothing outside of the source gets into the copy, whatever is renamed
// meanwhile and wherever links point.
type round struct {
	*Copying
	ctx   context.Context
	still bool  // no process writes: a change is an error
	least int64 // minimum size of a file that shares its blocks with its copy, if possible

	stack   []*frame
	first   map[inodeID]*copiedEntry // files with several names seen so far
	links   openDir                  // the directory of the copy that contains the last of them
	size    int64                    // bytes copied
	left    int
	unasked int64 // bytes written since free space was last checked
	asked   bool
}

// An inodeID identifies an inode, whatever its names.
type inodeID struct{ device, inode uint64 }

// A frame is a directory that the round is in.
type frame struct {
	*copiedEntry
	fd int // of the copy, or -1 if not needed so far; an open one gets its attributes again at the end
}

func (c *Copying) round(ctx context.Context, r round) (int64, error) {
	c.rounds++
	c.Skipped = nil // this round finds omissions again
	r.Copying, r.ctx, r.first, r.links.fd = c, ctx, map[inodeID]*copiedEntry{}, -1
	defer r.close()
	err := c.source.WalkSteps(ctx, bounds, tree.Steps{Visit: r.visit, Leave: r.leaveDirectory, Beyond: r.recordBeyond})
	return r.size, err
}

// close closes what an error left open.
func (r *round) close() {
	for _, f := range r.stack {
		f.close()
	}
	r.links.close()
}

func (r *round) visit(e *tree.Entry) error {
	if e.Stat.Mode&unix.S_IFMT == unix.S_IFSOCK {
		return nil // useless after its process has ended
	}
	if tree.IsDevice(&e.Stat) {
		r.recordSkipped(e.Path, "a device")
		return nil
	}
	var k *copiedEntry
	if len(r.stack) == 0 {
		k = r.top
	} else {
		k = r.currentFrame().inside[e.Name]
	}
	current := stateOf(&e.Stat)
	same := k != nil && current == k.fileState && current.since < r.doubtful
	if current.isDir() {
		return r.enter(e, k, current, same)
	}
	return r.copyEntry(e, k, current, same)
}

// currentFrame returns the directory that the round is in.
func (r *round) currentFrame() *frame { return r.stack[len(r.stack)-1] }

// enter enters a directory, and makes it if it does not exist.
func (r *round) enter(e *tree.Entry, k *copiedEntry, current fileState, same bool) error {
	if k != nil && !k.isDir() {
		if err := r.removeCopied(k); err != nil {
			return err
		}
		k = nil
	}
	if k == nil {
		k = &copiedEntry{name: e.Name, inside: map[string]*copiedEntry{}, bare: true}
		if err := r.makeDirectory(k); err != nil {
			return err
		}
	}
	k.fileState, k.met = current, r.rounds
	r.stack = append(r.stack, &frame{k, -1})
	if same {
		return nil
	}
	_, err := r.open(len(r.stack) - 1)
	return err
}

func (r *round) makeDirectory(k *copiedEntry) error {
	if len(r.stack) == 0 {
		r.top = k // StartCopy made it
		return nil
	}
	dir, err := r.openCurrent()
	if err == nil {
		err = unix.Mkdirat(dir, k.name, 0o700)
	}
	if err != nil {
		return asCopyError(k.name, err)
	}
	r.recordCopied(k)
	return nil
}

// recordCopied records that something is in the copy, in the current directory of the round.
func (r *round) recordCopied(k *copiedEntry) {
	k.up, k.met = r.currentFrame().copiedEntry, r.rounds
	k.up.inside[k.name] = k
}

// openCurrent opens the copy's directory that the round is in.
func (r *round) openCurrent() (int, error) { return r.open(len(r.stack) - 1) }

// open opens a directory of the copy that the round is in. It removes the attributes that new files
// in the directory would inherit, such as a default ACL. They are set again when the round leaves
// the directory.
func (r *round) open(i int) (int, error) {
	f := r.stack[i]
	if f.fd >= 0 {
		return f.fd, nil
	}
	above, err := r.copied.Fd(), error(nil)
	if i > 0 {
		if above, err = r.open(i - 1); err != nil {
			return -1, err
		}
	}
	fd, err := unix.Openat(above, f.at(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		f.fd, err = fd, clearInherited(fd, f.bare)
	}
	return f.fd, asCopyError(f.name, err)
}

func (f *frame) at() string {
	if f.up == nil {
		return "."
	}
	return f.name
}

func (f *frame) close() {
	if f.fd >= 0 {
		unix.Close(f.fd) //nolint:errcheck // what was written in there has been
		f.fd = -1
	}
}

// leaveDirectory removes from a directory of the copy what is no longer in the source, and sets the
// attributes of its source.
func (r *round) leaveDirectory(e *tree.Entry) error {
	f := r.currentFrame()
	for _, k := range f.inside {
		if k.met != r.rounds {
			if err := r.removeCopied(k); err != nil {
				return err
			}
		}
	}
	r.stack = r.stack[:len(r.stack)-1]
	defer f.close()
	if f.fd < 0 {
		return nil
	}
	attrs, err := tree.FileAttributes(e.Inner)
	if err != nil {
		return err
	}
	f.bare = len(attrs) == 0
	return r.setMetadata(e.Path, f.fd, ".", &e.Stat, attrs)
}

// removeCopied removes a known path from the copy.
func (r *round) removeCopied(k *copiedEntry) error {
	dir, err := r.openCurrent()
	if err == nil {
		err = tree.RemoveAllAt(dir, k.name)
	}
	if err != nil {
		return asCopyError(k.name, err)
	}
	delete(r.currentFrame().inside, k.name)
	return nil
}

// recordBeyond records a directory whose content is not in the copy.
func (r *round) recordBeyond(e *tree.Entry, why error) error {
	r.recordSkipped(e.Path, why.Error())
	return nil
}

// changedError returns the error for a file that changes although its writers are frozen.
func changedError() error {
	return problem.New(problem.Failed, "it changed although its writers are frozen")
}

// asCopyError marks an error as one of the copy, not of the source.
func asCopyError(name string, err error) error {
	var p *problem.Problem
	if err == nil || errors.As(err, &p) {
		return err
	}
	return &copyError{name, err}
}
