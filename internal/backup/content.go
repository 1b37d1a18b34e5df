package backup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/tree"
)

// file reads a regular file without its holes.
//
// A process that has mapped the file can change a page without changing the file's change time,
// until the page is next written to disk. So the pages are written out first. If the change time is
// the same afterwards, and stays the same until the next backup, then nothing has changed in
// between. (fsync(2) would also flush the disk's cache for each file, which is not needed.)
func (w *walk) file(dir int, name string, e *vault.Entry) error {
	f, st, err := tree.OpenEntry(dir, name)
	if err != nil {
		return err
	}
	defer unix.Close(f) //nolint:errcheck // it was only read
	const whole = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	if err := unix.SyncFileRange(f, 0, 0, whole); err != nil && !errors.Is(err, unix.EINVAL) &&
		!errors.Is(err, unix.ENOSYS) {
		return &os.PathError{Op: "sync", Path: name, Err: err}
	}
	if err := unix.Fstat(f, &st); err != nil {
		return err
	}
	same := st.Ctim.Nano() == e.Changed && st.Ino == e.Ino
	e.Mode, e.Uid, e.Gid, e.Time, e.Size, e.Ino, e.Changed = st.Mode, st.Uid, st.Gid, st.Mtim.Nano(), st.Size, st.Ino,
		st.Ctim.Nano()
	if !same {
		e.Changed = 0
	}
	e.Data, err = w.extents(f, &st)
	return err
}

// extents reads the parts of a file that are not holes.
func (w *walk) extents(f int, st *unix.Stat_t) ([]vault.Extent, error) {
	if st.Size == 0 {
		return nil, nil
	}
	if st.Blocks*512 >= st.Size {
		x, err := w.extent(f, 0, st.Size)
		return []vault.Extent{x}, err
	}
	var all []vault.Extent
	err := tree.EachData(f, st.Size, func(from, to int64) error {
		x, err := w.extent(f, from, to)
		all = append(all, x)
		return err
	})
	return all, err
}

func (w *walk) extent(f int, from, to int64) (vault.Extent, error) {
	x := vault.Extent{At: from, Size: to - from}
	for at := from; at < to; {
		if w.ctx.Err() != nil {
			return x, w.ctx.Err()
		}
		n := min(vault.PieceSize-at%vault.PieceSize, to-at)
		got, err := tree.ReadAt(f, w.buffer[:n], at)
		if err != nil {
			return x, err
		}
		clear(w.buffer[got:n]) // the file was truncated during the read: it will be read again
		d, err := w.pack.Add(w.buffer[:n])
		if err != nil {
			return x, err
		}
		x.Pieces = append(x.Pieces, d)
		w.read += n
		w.saw(n)
		at += n
	}
	return x, nil
}
