package nodecopy

import (
	"context"
	"errors"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/tree"
)

// A nodeFile is a regular file of a node that this host has opened itself, with the rights of the
// node's root.
type nodeFile struct {
	*os.File
	was *unix.Stat_t // its state when it was opened
}

// open opens a regular file in a node, or returns nil if this host cannot read the path itself. The
// node's tar then reads it, or reports what is wrong.
func (p Endpoint) open(ctx context.Context) *nodeFile {
	node, ok := p.In.(host.Viewer)
	if !ok {
		return nil
	}
	opened := make(chan *nodeFile, 1)
	go func() { opened <- openIn(node, path.Clean(p.Path)) }()
	select {
	case f := <-opened:
		return f
	case <-ctx.Done(): // a server of a node's volume may never answer, and tar in the node would also hang
		return nil
	}
}

func openIn(node host.Viewer, name string) *nodeFile {
	root, owned, err := node.View()
	if err != nil {
		return nil
	}
	defer root.Close()
	f, st, err := root.OpenOwned(name, owned)
	if err != nil {
		return nil
	}
	return &nodeFile{f, st}
}

// copyTo copies the file, under the given name, into a directory of this host that does not exist yet.
func (s *nodeFile) copyTo(ctx context.Context, in, name string, moved func(bytes int64)) error {
	made := tree.Header{
		Path: name, Mode: unix.S_IFREG | s.was.Mode&0o777, Uid: os.Geteuid(), Gid: os.Getegid(),
		Modified: time.Unix(s.was.Mtim.Unix()),
	}
	return build(in, func(b *tree.Builder) error {
		err := b.Add(&made, func(to *os.File) error { return tree.CopyContent(ctx, int(to.Fd()), int(s.Fd()), s.was, moved) })
		if err != nil {
			return err
		}
		return s.checkUnchanged()
	})
}

// checkUnchanged returns an error if the file has changed since it was opened, as tar does.
func (s *nodeFile) checkUnchanged() error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(s.Fd()), &stat); err != nil {
		return err
	}
	if stat.Size != s.was.Size || stat.Ctim != s.was.Ctim {
		return errors.New("it changed while it was read")
	}
	return nil
}
