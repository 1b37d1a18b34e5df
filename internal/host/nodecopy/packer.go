package nodecopy

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A packer is a file or directory of this host that is sent into a node. The path to it is trusted.
// The files below it are not, because other users may change them at the same time.
type packer struct {
	ctx   context.Context
	top   string
	to    io.Writer
	moved func(bytes int64) // or nil
	tar   *tar.Writer
	names map[[2]uint64]string // by device and inode: the first name of a file with several
	left  skippedPaths
}

// pack sends a file or directory of this host as a tar archive.
func pack(ctx context.Context, source string, to io.Writer, moved func(int64)) (*packer, error) {
	above, err := filepath.EvalSymlinks(path.Dir(source))
	if err != nil {
		return nil, missingSource(source, err)
	}
	dir, err := tree.Open(above)
	if err != nil {
		return nil, missingSource(source, err)
	}
	defer dir.Close() //nolint:errcheck // it was only read
	base := path.Base(source)
	st, err := dir.Lstat(base)
	if err != nil {
		return nil, missingSource(source, err)
	}
	l := &packer{ctx: ctx, top: base, to: to, moved: moved, tar: tar.NewWriter(to), names: map[[2]uint64]string{}}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = l.packTree(path.Join(above, base), base)
	} else {
		err = l.packEntry(&tree.Entry{Path: base, Dir: dir.Fd(), Name: base, Stat: *st}, base)
	}
	if err == nil {
		err = writeSeal(l.tar)
	}
	return l, err
}

func missingSource(source string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return problem.New(problem.Failed, "%s: the file does not exist", source).At("this host")
	}
	return problem.New(problem.Failed, "%s cannot be read", source).At("this host").Because(problem.PathErrorCause(err))
}

func (l *packer) packTree(dir, as string) error {
	top, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer top.Close() //nolint:errcheck // it was only read
	return top.Walk(l.ctx, tree.DefaultBounds, func(e *tree.Entry) error { return l.packEntry(e, path.Join(as, e.Path)) })
}

// packEntry sends one path.
func (l *packer) packEntry(e *tree.Entry, as string) error {
	st := &e.Stat
	it := &item{Header: tree.Header{Path: as, Mode: st.Mode, Modified: time.Unix(st.Mtim.Unix())}}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return l.tar.WriteHeader(it.header())
	case unix.S_IFLNK:
		var err error
		if it.Link, err = tree.ReadLink(e.Dir, e.Name); err != nil {
			return tree.IgnoreGone(err)
		}
		return l.tar.WriteHeader(it.header())
	case unix.S_IFREG:
		return l.packFile(e, it)
	}
	return l.left.add(as, l.top, tree.Kind(st.Mode))
}

func (l *packer) packFile(e *tree.Entry, it *item) error {
	fd, st, err := tree.OpenEntry(e.Dir, e.Name)
	if err != nil {
		return tree.IgnoreGone(err)
	}
	f := os.NewFile(uintptr(fd), it.Path)
	defer f.Close() //nolint:errcheck // it was only read
	if key := [2]uint64{st.Dev, st.Ino}; st.Nlink > 1 {
		if first, ok := l.names[key]; ok {
			it.Same = first
			return l.tar.WriteHeader(it.header())
		}
		l.names[key] = it.Path
	}
	it.size, it.Mode = st.Size, st.Mode
	if pipe, ok := l.to.(*os.File); ok && st.Size >= minSpliceBytes {
		return l.splice(pipe, f, it)
	}
	if err := l.tar.WriteHeader(it.header()); err != nil {
		return err
	}
	n, err := l.copyContent(l.tar, f, it.size)
	return truncatedError(it, n, err)
}

func (l *packer) copyContent(to io.Writer, f *os.File, bytes int64) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, contextReader{l.ctx, io.LimitReader(f, bytes), l.moved},
		make([]byte, min(readSize, bytes+1)))
}

// splice sends a file by splice(2), without copying its content through this process. It writes the
// header, the content and the padding of an archive itself.
func (l *packer) splice(pipe, f *os.File, it *item) error {
	if err := l.tar.Flush(); err != nil { // the padding of the previous file
		return err
	}
	if err := tar.NewWriter(pipe).WriteHeader(it.header()); err != nil {
		return err
	}
	n, err := l.spliceContent(pipe, f, it.size)
	if errors.Is(err, errors.ErrUnsupported) {
		n, err = l.copyContent(pipe, f, it.size)
	}
	if err := truncatedError(it, n, err); err != nil {
		return err
	}
	_, err = pipe.Write(make([]byte, paddingBytes(it.size)))
	return err
}

func (l *packer) spliceContent(pipe, f *os.File, bytes int64) (int64, error) {
	s, err := spliceInto(pipe, f)
	if err != nil {
		return 0, err
	}
	return s.move(l.ctx, bytes, l.moved)
}

// paddingBytes returns the number of padding bytes after a content.
func paddingBytes(size int64) int64 {
	const block = 512
	return (block - size%block) % block
}

// truncatedError returns an error if fewer bytes of a file were read than its header announced.
func truncatedError(it *item, came int64, err error) error {
	if err == nil && came < it.size {
		err = fmt.Errorf("%s became shorter while it was read", tree.DisplayPath(it.Path))
	}
	return err
}
