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

// A Receiving is a layer that comes in pieces into a directory of our own. What has come is verified, and is there after an interruption.
type Receiving struct {
	Index *Index
	dir   string
	whole []byte // the index as it travels

	mutex sync.Mutex
	files map[string]*file // by the digest of what is in them
	order []Piece          // what is to come, as trees are walked
	left  int
	bytes int64 // to come
	moved chan struct{}
	over  bool // nothing more comes
}

// file is one that comes.
type file struct {
	size   int64
	pieces []string // their digests
	got    []bool
}

// Open goes on with what is in a directory, or begins. Whole is the index as it came.
func Open(ctx context.Context, dir string, x *Index, whole []byte) (*Receiving, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &Receiving{Index: x, dir: dir, whole: whole, files: map[string]*file{}, moved: make(chan struct{})}
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

// Missing says how many bytes are to come.
func (r *Receiving) Missing() int64 { return r.bytes }

func (f *file) length(n int) int64 { return min(Size, f.size-int64(n)*Size) }

func (r *Receiving) at(sum string) string { return filepath.Join(r.dir, sum) }

// resume looks which pieces of a file have come before. What is not whole comes again.
func (r *Receiving) resume(ctx context.Context, sum string, f *file) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	has, err := os.OpenFile(r.at(sum), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer has.Close() //nolint:errcheck // nothing was written
	info, err := has.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.size {
		err = has.Truncate(0)
		if err == nil {
			err = has.Truncate(f.size)
		}
		if err != nil {
			return err
		}
		for n, piece := range f.pieces {
			f.got[n] = piece == sums.Zero() // which takes no place on disk
		}
		return nil
	}
	if f.size == 0 {
		f.got[0] = f.pieces[0] == sumOf(nil)
		return nil
	}
	came, err := sums.Pieces(ctx, has)
	for n, piece := range came {
		f.got[n] = piece == f.pieces[n]
	}
	return err
}

// take keeps a piece that has come, if it is what it should be. That it has come already is no error.
func (r *Receiving) take(p Piece, content []byte) error {
	r.mutex.Lock()
	f := r.files[p.Sum]
	got := f.got[p.N]
	r.mutex.Unlock()
	if sumOf(content) != f.pieces[p.N] {
		return ErrLie
	}
	if got {
		return nil
	}
	to, err := os.OpenFile(r.at(p.Sum), os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = to.WriteAt(content, int64(p.N)*Size)
	if err := errors.Join(err, to.Close()); err != nil {
		return &keepError{err}
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

// keepError is of this host's own disk, and no fault of who gave.
type keepError struct{ error }

func (e *keepError) Unwrap() error { return e.error }

// End lets nobody wait for more.
func (r *Receiving) End() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.over {
		r.over = true
		close(r.moved)
		r.moved = make(chan struct{})
	}
}

// Soon is how long somebody who asks for a piece waits until it has come.
const Soon = 10 * time.Second

var errNotCome = errors.New("it has not come here")

// Whole gives the index as it travels, for others.
func (r *Receiving) Whole() []byte { return r.whole }

// Piece gives a piece to others, and waits until it has come.
func (r *Receiving) Piece(ctx context.Context, p Piece) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, Soon)
	defer cancel()
	for {
		r.mutex.Lock()
		f, moved, over := r.files[p.Sum], r.moved, r.over
		got := f != nil && p.N >= 0 && p.N < len(f.got) && f.got[p.N]
		r.mutex.Unlock()
		switch {
		case f == nil || p.N < 0 || p.N >= len(f.got):
			return nil, errors.New("it is not of the layer")
		case got:
			return readPiece(r.at(p.Sum), p.N)
		case over:
			return nil, errNotCome
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, errNotCome
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
	content := make([]byte, Size)
	read, err := f.ReadAt(content, int64(n)*Size)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return content[:read], err
}

// Lay makes the tree of what has come. The files stay where they are, too, for others, until Remove.
func (r *Receiving) Lay(ctx context.Context, top string) error {
	var lacks error
	b, err := tree.Build(top, func(attr string) {
		lacks = &keepError{fmt.Errorf("the file system does not take the attribute %q", attr)}
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
		made := e.Made(treesync.Carried)
		switch {
		case e.IsFile() && e.IsFirst() && !laid[e.Sum]:
			laid[e.Sum] = true
			err = b.Adopt(made, from, e.Sum)
		default:
			err = b.Add(made, func(to *os.File) error { return copyOf(ctx, to, r.at(e.Sum)) })
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(b.Close(), lacks)
}

// Own reports whether an error is of this host's own, and no fault of who gave.
func Own(err error) bool {
	var own *keepError
	return errors.As(err, &own) || problem.DiskFull(err)
}

// copyOf is for a second file with the same content.
func copyOf(ctx context.Context, to *os.File, path string) error {
	f, err := tree.OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if tree.Share(int(to.Fd()), int(f.Fd())) == nil {
		return nil
	}
	return tree.CopyContent(ctx, int(to.Fd()), int(f.Fd()), &st, nil)
}

// Wrong names a file whose pieces are as the index says, and which is not: whoever gave the index has lied. "": there is none.
func (r *Receiving) Wrong(ctx context.Context) (string, error) {
	for i := range r.Index.Entries {
		e := &r.Index.Entries[i]
		if len(e.Pieces) == 0 {
			continue
		}
		f, err := tree.OpenFile(r.at(e.Sum))
		if err != nil {
			return "", err
		}
		is, err := sums.Of(ctx, f, nil)
		_ = f.Close()
		if err != nil {
			return "", err
		}
		if is != e.Sum {
			return tree.Shorten(string(e.Name)), nil
		}
	}
	return "", nil
}

// Fits tells whether there is room for what is to come.
func (r *Receiving) Fits(spare int64) error {
	if r.bytes > spare {
		return fmt.Errorf("%d bytes are to come, and there is room for %d: %w", r.bytes, spare, tree.ErrTooLarge)
	}
	return nil
}
