package chunks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/image/sums"
	"orrery/internal/problem"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// A Download is a tree whose pieces arrive in a private directory. Each piece is verified and
// survives an interruption.
type Download struct {
	Index  *Index
	dir    string
	packed []byte // the index as it was received

	mutex sync.Mutex
	files map[string]*file // by the digest of their content
	order []Piece          // missing pieces, in the order of tree.Root.Walk
	left  int
	bytes int64 // missing bytes
	moved chan struct{}
	over  bool // no more pieces will arrive
}

// file is a file that is being downloaded.
type file struct {
	size   int64
	pieces []string // their digests
	got    []bool
}

// Open resumes the download in a directory, or begins one. Packed is the index as it was received.
func Open(ctx context.Context, dir string, x *Index, packed []byte) (*Download, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &Download{Index: x, dir: dir, packed: packed, files: map[string]*file{}, moved: make(chan struct{})}
	for i := range x.Entries {
		e := &x.Entries[i]
		if !e.IsFile() || r.files[e.Sum] != nil {
			continue
		}
		f := &file{size: e.Size, pieces: e.Pieces}
		if len(f.pieces) == 0 {
			f.pieces = []string{e.Sum}
		}
		f.got = make([]bool, len(f.pieces))
		r.files[e.Sum] = f
		if err := r.resume(ctx, e.Sum, f); err != nil {
			return nil, err
		}
		for n, got := range f.got {
			if !got {
				r.order = append(r.order, Piece{e.Sum, n})
				r.bytes += f.length(n)
			}
		}
	}
	r.left = len(r.order)
	return r, nil
}

// Missing returns how many bytes have not arrived yet.
func (r *Download) Missing() int64 { return r.bytes }

func (f *file) length(n int) int64 { return min(PieceSize, f.size-int64(n)*PieceSize) }

func (r *Download) at(sum string) string { return filepath.Join(r.dir, sum) }

// resume finds out which pieces of a file have arrived before. Incomplete pieces are downloaded
// again.
func (r *Download) resume(ctx context.Context, sum string, f *file) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	partial, err := os.OpenFile(r.at(sum), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer partial.Close() //nolint:errcheck // nothing was written
	info, err := partial.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.size {
		err = partial.Truncate(0)
		if err == nil {
			err = partial.Truncate(f.size)
		}
		if err != nil {
			return err
		}
		for n, piece := range f.pieces {
			f.got[n] = piece == sums.ZeroPiece() // a hole, which takes no disk space
		}
		return nil
	}
	if f.size == 0 {
		f.got[0] = f.pieces[0] == digestOf(nil)
		return nil
	}
	came, err := sums.PieceDigests(ctx, partial)
	for n, piece := range came {
		f.got[n] = piece == f.pieces[n]
	}
	return err
}

// store stores a received piece if its digest is correct. Storing a piece twice is no error.
func (r *Download) store(p Piece, content []byte) error {
	r.mutex.Lock()
	f := r.files[p.Sum]
	got := f.got[p.N]
	r.mutex.Unlock()
	if digestOf(content) != f.pieces[p.N] {
		return ErrCorrupt
	}
	if got {
		return nil
	}
	to, err := os.OpenFile(r.at(p.Sum), os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = to.WriteAt(content, int64(p.N)*PieceSize)
	if err := errors.Join(err, to.Close()); err != nil {
		return &localError{err}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !f.got[p.N] {
		f.got[p.N] = true
		r.left--
		r.bytes -= int64(len(content))
		close(r.moved)
		r.moved = make(chan struct{})
	}
	return nil
}

// localError is an error of this host, not of the source.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }

// Stop wakes all callers of Piece. Those whose piece has not arrived get an error.
func (r *Download) Stop() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.over {
		r.over = true
		close(r.moved)
		r.moved = make(chan struct{})
	}
}

// WaitTimeout is how long a request for a piece waits for the piece to arrive.
const WaitTimeout = 10 * time.Second

var errNotReceived = errors.New("this host has not received it")

// Packed returns the packed index.
func (r *Download) Packed() []byte { return r.packed }

// Piece returns a piece for another host. It waits until the piece has arrived.
func (r *Download) Piece(ctx context.Context, p Piece) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, WaitTimeout)
	defer cancel()
	for {
		r.mutex.Lock()
		f, moved, over := r.files[p.Sum], r.moved, r.over
		got := f != nil && p.N >= 0 && p.N < len(f.got) && f.got[p.N]
		r.mutex.Unlock()
		switch {
		case f == nil || p.N < 0 || p.N >= len(f.got):
			return nil, errors.New("it is not part of the layer")
		case got:
			return readPiece(r.at(p.Sum), p.N)
		case over:
			return nil, errNotReceived
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, errNotReceived
		}
	}
}

func readPiece(path string, n int) ([]byte, error) {
	f, err := tree.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return PieceOf(f, n)
}

// PieceOf reads a piece of a file.
func PieceOf(f *os.File, n int) ([]byte, error) {
	content := make([]byte, PieceSize)
	read, err := f.ReadAt(content, int64(n)*PieceSize)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return content[:read], err
}

// Extract writes the tree. The files also stay in the download directory for other hosts.
func (r *Download) Extract(ctx context.Context, top string) error {
	var lacks error
	b, err := tree.NewBuilder(top, func(attr string) {
		lacks = &localError{fmt.Errorf("the file system does not support the attribute %q", attr)}
	})
	if err != nil {
		return err
	}
	defer b.Abandon()
	from, err := tree.Open(r.dir)
	if err != nil {
		return err
	}
	defer from.Close()
	laid := map[string]bool{}
	for i := range r.Index.Entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e := &r.Index.Entries[i]
		made := e.Header(treesync.ContentAttrs)
		switch {
		case e.IsFile() && e.IsFirst() && !laid[e.Sum]:
			laid[e.Sum] = true
			err = b.AddLink(made, from, e.Sum)
		default:
			err = b.Add(made, func(to *os.File) error { return fillFrom(ctx, to, r.at(e.Sum)) })
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(b.Close(), lacks)
}

// IsLocal reports whether an error is one of this host, not of the source.
func IsLocal(err error) bool {
	var own *localError
	return errors.As(err, &own) || problem.DiskFull(err)
}

// fillFrom writes the content of path to another file that has the same content.
func fillFrom(ctx context.Context, to *os.File, path string) error {
	f, err := tree.OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if tree.Reflink(int(to.Fd()), int(f.Fd())) == nil {
		return nil
	}
	return tree.CopyContent(ctx, int(to.Fd()), int(f.Fd()), &st, nil)
}

// Mismatch returns a path whose pieces match the index but whose digest does not, which means that
// the index is wrong. It returns "" if there is none.
func (r *Download) Mismatch(ctx context.Context) (string, error) {
	for i := range r.Index.Entries {
		e := &r.Index.Entries[i]
		if len(e.Pieces) == 0 {
			continue
		}
		f, err := tree.OpenFile(r.at(e.Sum))
		if err != nil {
			return "", err
		}
		sum, err := sums.Digest(ctx, f, nil)
		_ = f.Close()
		if err != nil {
			return "", err
		}
		if sum != e.Sum {
			return tree.DisplayPath(string(e.Name)), nil
		}
	}
	return "", nil
}

// CheckSpace returns an error if the missing pieces need more than free bytes.
func (r *Download) CheckSpace(free int64) error {
	if r.bytes > free {
		return fmt.Errorf("%d bytes are needed, %d are free: %w", r.bytes, free, tree.ErrTooLarge)
	}
	return nil
}
