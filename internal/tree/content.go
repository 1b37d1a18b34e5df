package tree

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// Reflink makes a new, empty file share the blocks of another (FICLONE), if the file system supports
// that.
func Reflink(to, from int) error { return unix.IoctlFileClone(to, from) }

// CopyContent copies the content of a file to a new, empty file and preserves holes. It copies as
// many bytes as st says. It reports progress to moved, which may be nil.
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

// EachData calls do for each part of a file of the given size that is not a hole.
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

// nextData returns the next part of a file that is not a hole, or an empty one at the end.
func nextData(f int, at, size int64) (from, to int64, err error) {
	from, err = unix.Seek(f, at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): // only a hole is left, or the file has been truncated
		return size, size, nil
	case errors.Is(err, unix.EINVAL): // the file system does not support holes
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

// step is how much is copied between two checks of the context.
const step = 16 << 20

// A copyFunc copies bytes from a position in one file to the same position in another. It returns
// how many bytes it has copied, or 0 at the end of the file.
type copyFunc func(to, from int, at, bytes int64) (int, error)

// copyRange copies a part of a file in the fastest way that works between the two files. If the
// source has been truncated, it stops there.
func copyRange(ctx context.Context, to, from int, at, end int64, moved func(bytes int64)) error {
	for carriers := []copyFunc{copyFileRange, sendFile, copyBuffered}; at < end; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := carriers[0](to, from, at, min(end-at, step))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case len(carriers) > 1 && isUnsupported(err):
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

// isUnsupported reports whether an error means that the kernel cannot copy between these file systems in
// this way.
func isUnsupported(err error) bool {
	return slices.ContainsFunc([]error{unix.EXDEV, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM},
		func(no error) bool { return errors.Is(err, no) })
}

func copyFileRange(to, from int, at, bytes int64) (int, error) {
	read, write := at, at
	return unix.CopyFileRange(from, &read, to, &write, int(bytes), 0)
}

// sendFile copies from the page cache with one copy in memory, where copyBuffered makes two.
func sendFile(to, from int, at, bytes int64) (int, error) {
	if _, err := unix.Seek(to, at, unix.SEEK_SET); err != nil {
		return 0, err
	}
	return unix.Sendfile(to, from, &at, int(bytes))
}

func copyBuffered(to, from int, at, bytes int64) (int, error) {
	b := make([]byte, min(bytes, 1<<20))
	n, err := unix.Pread(from, b, at)
	if err != nil {
		return 0, err
	}
	return unix.Pwrite(to, b[:max(n, 0)], at)
}

// ReadAt reads at a position in a file until b is full or the file ends.
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
