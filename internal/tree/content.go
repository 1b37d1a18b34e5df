package tree

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// Share makes a new, empty file share the blocks of another (FICLONE), where the file system can.
func Share(to, from int) error { return unix.IoctlFileClone(to, from) }

// CopyContent copies what is in a file into a new, empty one, and lets holes be holes. It takes so much as the file held when it was looked at.
func CopyContent(ctx context.Context, to, from int, st *unix.Stat_t) error {
	if st.Size > 0 && st.Blocks*512 >= st.Size {
		return copyRange(ctx, to, from, 0, st.Size)
	}
	for at := int64(0); at < st.Size; {
		data, end, err := nextData(from, at, st.Size)
		if err != nil {
			return err
		}
		if err := copyRange(ctx, to, from, data, end); err != nil {
			return err
		}
		at = end
	}
	return unix.Ftruncate(to, st.Size)
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

// copyRange copies a part of a file. What is no longer there is left out.
func copyRange(ctx context.Context, to, from int, at, end int64) error {
	for at < end {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		read, write := at, at
		n, err := unix.CopyFileRange(from, &read, to, &write, int(min(end-at, step)), 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPERM):
			return copyBuffered(ctx, to, from, at, end)
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		at += int64(n)
	}
	return nil
}

// copyBuffered does so where the kernel does not: between some file systems.
func copyBuffered(ctx context.Context, to, from int, at, end int64) error {
	b := make([]byte, min(end-at, 1<<20))
	for at < end {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := unix.Pread(from, b[:min(end-at, int64(len(b)))], at)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		for done := 0; done < n; {
			wrote, err := unix.Pwrite(to, b[done:n], at+int64(done))
			if err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			done += max(wrote, 0)
		}
		at += int64(n)
	}
	return nil
}
