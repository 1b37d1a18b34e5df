package nodecopy

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// An archive is what a node's tar sends. It is not trusted, because the node may have any program
// under that name. It must consist of regular files, directories and links below one name, in the
// order of a walk. So no path comes twice, and none is below a link. Other kinds of files (devices,
// named pipes) are left out and reported.
type archive struct {
	pipe  syscall.Conn // the source, if it can be spliced, or nil
	from  *bufio.Reader
	tar   *tar.Reader
	top   string   // the prefix of all names
	above []string // the parent directories of the last path
	last  string
	seen  int
	left  skippedPaths
	moved func(bytes int64) // or nil
}

// readSize is the size of a read. With smaller reads, most time is spent switching between the writing
// and the reading process.
const readSize = 512 << 10

// An item is one path of an archive.
type item struct {
	tree.Header
	size int64
}

func openArchive(from io.Reader, top string) *archive {
	buffered := bufio.NewReaderSize(from, readSize)
	pipe, _ := from.(syscall.Conn)
	return &archive{pipe: pipe, from: buffered, tar: tar.NewReader(buffered), top: top}
}

// next returns the next item, or io.EOF at the end. The content is read from the archive.
func (c *archive) next(ctx context.Context) (*item, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h, err := c.tar.Next()
		if errors.Is(err, io.EOF) {
			return nil, c.readPadding()
		}
		if err != nil {
			return nil, err
		}
		if c.seen++; c.seen > tree.DefaultBounds.All {
			return nil, invalidArchive("it has more than %d paths", tree.DefaultBounds.All)
		}
		it, err := c.item(h)
		if it != nil || err != nil {
			return it, err
		}
	}
}

func invalidArchive(format string, args ...any) error {
	return problem.New(problem.Failed, "the node did not send a valid file tree: "+format, args...)
}

// item returns the item of a header, or nil if it is left out.
func (c *archive) item(h *tar.Header) (*item, error) {
	name := strings.TrimSuffix(h.Name, "/")
	if err := c.checkOrder(name); err != nil {
		return nil, err
	}
	it := &item{size: h.Size, Header: tree.Header{
		Path: name, Mode: uint32(h.Mode & 0o777), Uid: os.Geteuid(), Gid: os.Getegid(), Modified: h.ModTime,
	}}
	switch h.Typeflag {
	case tar.TypeReg:
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				return nil, invalidArchive("%s has holes", tree.DisplayPath(name)) // they could be of any size, in no bytes
			}
		}
		it.Mode |= unix.S_IFREG
	case tar.TypeDir:
		it.Mode |= unix.S_IFDIR
		c.above = append(c.above, name)
	case tar.TypeSymlink:
		it.Mode, it.Link, it.size = unix.S_IFLNK|0o777, h.Linkname, 0
	case tar.TypeLink:
		if !c.isBelow(h.Linkname) || !tree.PathLess(h.Linkname, name) {
			return nil, invalidArchive("%s is a hard link to %s, which does not precede it", tree.DisplayPath(name),
				tree.DisplayPath(h.Linkname))
		}
		it.Mode, it.Same, it.size = unix.S_IFREG|it.Mode, h.Linkname, 0
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		kind := map[byte]string{tar.TypeChar: "a device", tar.TypeBlock: "a device", tar.TypeFifo: "a named pipe"}
		return nil, c.left.add(name, c.top, kind[h.Typeflag])
	default:
		return nil, invalidArchive("%s has an unknown type (%q)", tree.DisplayPath(name), h.Typeflag)
	}
	return it, nil
}

// checkOrder checks that a path comes after the last one, in a directory that the archive contains.
func (c *archive) checkOrder(name string) error {
	if !c.isBelow(name) {
		return invalidArchive("%q is not below %q", tree.DisplayPath(name), tree.DisplayPath(c.top))
	}
	if c.last != "" && !tree.PathLess(c.last, name) {
		return invalidArchive("%q comes after %q", tree.DisplayPath(name), tree.DisplayPath(c.last))
	}
	for len(c.above) > 0 && !strings.HasPrefix(name, c.above[len(c.above)-1]+"/") {
		c.above = c.above[:len(c.above)-1]
	}
	if name != c.top && (len(c.above) == 0 || c.above[len(c.above)-1] != path.Dir(name)) {
		return invalidArchive("the directory of %q is missing", tree.DisplayPath(name))
	}
	c.last = name
	return nil
}

func (c *archive) isBelow(name string) bool {
	return tree.ValidPath(name) && (name == c.top || strings.HasPrefix(name, c.top+"/"))
}

// readPadding reads the padding of the last record, so that the node's tar does not write into a closed
// pipe.
func (c *archive) readPadding() error {
	const record = 1 << 20
	if n, err := io.CopyN(io.Discard, c.from, record); n == record || !errors.Is(err, io.EOF) {
		return errors.Join(invalidArchive("data follows its end"), err)
	}
	if c.last == "" {
		return invalidArchive("it is empty")
	}
	return io.EOF
}

// extract writes an archive into a directory of this host that does not exist yet.
func (c *archive) extract(ctx context.Context, in string) error {
	return build(in, func(b *tree.Builder) error {
		buffer := make([]byte, readSize)
		for {
			it, err := c.next(ctx)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			err = b.Add(&it.Header, func(f *os.File) error {
				if c.pipe != nil && it.size >= minSpliceBytes {
					return c.splice(ctx, f, it.size)
				}
				_, err := io.CopyBuffer(struct{ io.Writer }{f}, contextReader{ctx, c.tar, c.moved}, buffer)
				return err
			})
			if err != nil {
				return err
			}
		}
	})
}

// splice writes a file by splice(2), after the part that was already read ahead. It reads what
// splice cannot transfer. That is the rest of a command's output after the command has ended, or
// all of it if the file system does not support splice.
func (c *archive) splice(ctx context.Context, to *os.File, size int64) error {
	read := func(bytes int64) (int64, error) {
		return io.CopyN(struct{ io.Writer }{to}, contextReader{ctx, c.from, c.moved}, bytes)
	}
	done, err := read(min(size, int64(c.from.Buffered())))
	if err != nil {
		return err
	}
	if s, err := spliceFrom(c.pipe, to); err == nil {
		n, err := s.move(ctx, size-done, c.moved)
		if done += n; err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	if _, err := read(size - done); err != nil {
		return unexpected(err)
	}
	if _, err := io.CopyN(io.Discard, c.from, paddingBytes(size)); err != nil {
		return unexpected(err)
	}
	c.tar = tar.NewReader(c.from) // a new reader, which expects a header next
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// forward sends an archive on to another node.
func (c *archive) forward(ctx context.Context, to io.Writer) error {
	w := tar.NewWriter(to)
	buffer := make([]byte, readSize)
	for {
		it, err := c.next(ctx)
		if errors.Is(err, io.EOF) {
			return writeSeal(w)
		}
		if err == nil {
			err = w.WriteHeader(it.header())
		}
		if err == nil && it.size > 0 {
			_, err = io.CopyBuffer(struct{ io.Writer }{w}, contextReader{ctx, c.tar, c.moved}, buffer)
		}
		if err != nil {
			return err
		}
	}
}

func (it *item) header() *tar.Header {
	h := &tar.Header{Name: it.Path, Mode: int64(it.Mode & 0o7777), Size: it.size, ModTime: it.Modified,
		Format: tar.FormatPAX}
	switch {
	case it.Same != "":
		h.Typeflag, h.Linkname = tar.TypeLink, it.Same
	case it.Mode&unix.S_IFMT == unix.S_IFLNK:
		h.Typeflag, h.Linkname = tar.TypeSymlink, it.Link
	case it.Mode&unix.S_IFMT == unix.S_IFDIR:
		h.Typeflag, h.Name, h.Size = tar.TypeDir, it.Path+"/", 0
	default:
		h.Typeflag = tar.TypeReg
	}
	return h
}

// contextReader reads until ctx ends, and reports the number of bytes.
type contextReader struct {
	ctx context.Context
	io.Reader
	moved func(bytes int64) // or nil
}

func (u contextReader) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	n, err := u.Reader.Read(p)
	if u.moved != nil {
		u.moved(int64(n))
	}
	return n, err
}

// skippedPaths collects paths that were not copied.
type skippedPaths struct {
	count int
	some  []string
}

// add records a path as left out. It returns an error for the top path.
func (l *skippedPaths) add(name, top, kind string) error {
	if name == top {
		return problem.New(problem.Failed, "%s is %s, and only files, directories and links are copied",
			tree.DisplayPath(name),
			kind)
	}
	if l.count++; len(l.some) < 5 {
		l.some = append(l.some, tree.DisplayPath(name)+" is "+kind)
	}
	return nil
}

// problem returns a problem that lists what was left out, or nil.
func (l *skippedPaths) problem() error {
	if l.count == 0 {
		return nil
	}
	more := ""
	if l.count > len(l.some) {
		more = fmt.Sprintf(" and %d more", l.count-len(l.some))
	}
	return problem.New(problem.Failed, "only files, directories and links were copied; left out: %s%s",
		strings.Join(l.some, ", "), more)
}
