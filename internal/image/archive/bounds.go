package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// bounds are the remaining limits of an import. The archive is not trusted. A few kilobytes,
// compressed or with holes, can expand to more than any disk holds.
type bounds struct {
	content int64 // bytes of files: the free space on the disk
	stream  int64 // bytes of decompressed archives
	paths   int
	names   int   // bytes of all names
	holed   int64 // bytes of files with holes, including the holes
}

// newBounds returns the limits for an import with free bytes left on the disk.
func newBounds(free int64) *bounds {
	const most = 1 << 50 // so that nothing overflows
	free = min(free, most)
	return &bounds{content: free, stream: 2*free + 256<<20, paths: 4 << 20, names: 512 << 20, holed: maxSparseBytes}
}

// maxSparseBytes limits the total size of files with holes. They use no disk space, but programs that
// read them read the holes as well.
const maxSparseBytes = 16 << 40

var errTooMuch = errors.New("its content does not fit on this disk")

// entry counts an entry of an archive.
func (b *bounds) entry(name string, size int64) error {
	if len(name) >= unix.PathMax || strings.Count(path.Clean(name), "/") > tree.DefaultBounds.Depth {
		return problem.New(problem.Mistake, "import: a path is too long: %s", tree.DisplayPath(fmt.Sprintf("%q", name)))
	}
	if b.content -= max(size, 0); size < 0 || b.content < 0 {
		return b.limitError(errTooMuch)
	}
	return b.path(name)
}

// path counts a path that an archive creates, by an entry or as the parent directory of one.
func (b *bounds) path(name string) error {
	b.paths--
	if b.names -= len(name); b.paths < 0 || b.names < 0 {
		return b.limitError(errors.New("it has more than 4 million paths, or more than 512 MiB of names"))
	}
	return nil
}

// hole counts the size of a file with holes.
func (b *bounds) hole(size int64) error {
	if size > b.holed {
		return b.limitError(fmt.Errorf("its sparse files have more than %d TiB in total", int64(maxSparseBytes)>>40))
	}
	b.holed -= size
	return nil
}

func (b *bounds) limitError(why error) error {
	return problem.New(problem.Unable, "import: the archive is too large").Because(why).Try("import a smaller image, or make room")
}

// reader limits how much is read of an archive. Its reads fail when ctx has ended.
func (b *bounds) reader(ctx context.Context, from io.Reader) io.Reader {
	return &boundedReader{ctx, from, b}
}

type boundedReader struct {
	ctx  context.Context
	from io.Reader
	by   *bounds
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	n, err := r.from.Read(p)
	if r.by.stream -= int64(n); r.by.stream < 0 {
		return 0, r.by.limitError(errTooMuch)
	}
	return n, err
}
