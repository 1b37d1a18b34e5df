package tree

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// Share makes a new, empty file share the blocks of another (FICLONE), where the file system can.
func Share(to, from int) error { return unix.IoctlFileClone(to, from) }

// CopyContent copies what is in a file into a new, empty one, and lets holes be holes. It takes so
// much as the file held when it was looked at. Moved is told of what has been copied; nil: nobody
// asks.
func CopyContent(ctx context.Context, to, from int, st *unix.Stat_t, moved func(bytes int64)) error {
	if st.Size > 0 && st.Blocks*512 >= st.Size {
		return copyRange(ctx, to, from, 0, st.Size, moved)
	}
	err := EachData(from, st.Size, func(at, end int64) error { return copyRange(ctx, to, from, at, end, moved) })
	if err != nil {
		return err
	}
	return unix.Ftruncate(to, st.Size)
}

// EachData does something with each part of a file of some size that is no hole.
func EachData(f int, size int64, do func(at, end int64) error) error {
	for at := int64(0); at < size; {
		data, end, err := nextData(f, at, size)
		if err != nil {
			return err
		}
		if data < end {
			if err := do(data, end); err != nil {
				return err
			}
		}
		at = end
	}
	return nil
}

// nextData finds the next part of a file that is no hole; at its end, an empty one.
func nextData(f int, at, size int64) (from, to int64, err error) {
	from, err = unix.Seek(f, at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): // nothing but a hole is left, or it has been cut off meanwhile
		return size, size, nil
	case errors.Is(err, unix.EINVAL): // the file system knows no holes
		return at, size, nil
	case err != nil:
		return 0, 0, err
	}
	to, err = unix.Seek(f, from, unix.SEEK_HOLE)
	if errors.Is(err, unix.ENXIO) {
		return size, size, nil
	}
	return min(from, size), min(to, size), err
}

// step is how much is copied before it is asked whether to go on.
const step = 16 << 20

// A carrier carries bytes from a place in one file to the same in another, and says how many; none:
// there are no more.
type carrier func(to, from int, at, bytes int64) (int, error)

// copyRange copies a part of a file by the quickest way that there is between the two. What is no
// longer there is left out.
func copyRange(ctx context.Context, to, from int, at, end int64, moved func(bytes int64)) error {
	for carriers := []carrier{byRange, bySend, byBuffer}; at < end; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := carriers[0](to, from, at, min(end-at, step))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case len(carriers) > 1 && noWay(err):
			carriers = carriers[1:]
			continue
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		at += int64(n)
		if moved != nil {
			moved(int64(n))
		}
	}
	return nil
}

// noWay reports whether the kernel does not carry anything in some way between some file systems.
func noWay(err error) bool {
	return slices.ContainsFunc([]error{unix.EXDEV, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM},
		func(no error) bool { return errors.Is(err, no) })
}

func byRange(to, from int, at, bytes int64) (int, error) {
	read, write := at, at
	return unix.CopyFileRange(from, &read, to, &write, int(bytes), 0)
}

// bySend carries what is in the page cache, and so copies it once where byBuffer copies it twice.
func bySend(to, from int, at, bytes int64) (int, error) {
	if _, err := unix.Seek(to, at, unix.SEEK_SET); err != nil {
		return 0, err
	}
	return unix.Sendfile(to, from, &at, int(bytes))
}

func byBuffer(to, from int, at, bytes int64) (int, error) {
	b := make([]byte, min(bytes, 1<<20))
	n, err := unix.Pread(from, b, at)
	if err != nil {
		return 0, err
	}
	return unix.Pwrite(to, b[:max(n, 0)], at)
}

// ReadAt reads from a place in a file, as much as there is, until b is full.
func ReadAt(f int, b []byte, at int64) (got int, err error) {
	for got < len(b) {
		n, err := unix.Pread(f, b[got:], at+int64(got))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return got, err
		}
		got += n
	}
	return got, nil
}
