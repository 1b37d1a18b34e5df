package treesync

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// file sends a regular file; of a large one that was sent before, only the blocks that have changed. A process that has it mapped can
// change a page without a new time of change until the page is written to disk, so the pages are written first.
func (r *pass) file(e *tree.Entry, k *fileState) error {
	f, st, err := tree.OpenEntry(e.Dir, e.Name)
	if err != nil {
		return err
	}
	defer unix.Close(f) //nolint:errcheck // it was only read
	if !r.still {
		const whole = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
		if err := unix.SyncFileRange(f, 0, 0, whole); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
			return os.NewSyscallError("sync_file_range", err)
		}
		if err := unix.Fstat(f, &st); err != nil {
			return err
		}
	}
	e.Stat = st
	sent, err := r.entry(e)
	if err != nil {
		return err
	}
	is := stateOf(&st)
	sent.Size, sent.Patch = st.Size, k.sums != nil && k.state.ino == is.ino && is.links == 1
	was := k.sums
	if !sent.Patch {
		was = nil
	}
	k.sums = nil
	if st.Size >= minPatchSize {
		k.sums = map[int64][16]byte{}
	}
	if err := r.conn.writeJSON(fileStart, sent); err != nil {
		return err
	}
	if err := r.blocks(f, &st, k, was); err != nil {
		return err
	}
	for n := range was {
		if _, stays := k.sums[n]; !stays && n*blockSize < st.Size {
			if err := r.conn.frame(hole, number(n*blockSize), number(min(blockSize, st.Size-n*blockSize))); err != nil {
				return err
			}
		}
	}
	k.state = r.stableState(is, &st)
	return r.conn.writeJSON(fileEnd, sent)
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) } //nolint:gosec // it is an offset

// blocks sends the blocks of a file that are no holes, but those that are unchanged.
func (r *pass) blocks(f int, st *unix.Stat_t, k *fileState, was map[int64][16]byte) error {
	next := int64(0) // the first block that has not been read
	return tree.EachData(f, st.Size, func(from, to int64) error {
		for n := max(next, from/blockSize); n*blockSize < to; n++ {
			next = n + 1
			if r.ctx.Err() != nil {
				return context.Cause(r.ctx)
			}
			b := r.buffer[:min(blockSize, st.Size-n*blockSize)]
			got, err := tree.ReadAt(f, b, n*blockSize)
			if err != nil {
				return err
			}
			clear(b[got:]) // the file was cut off meanwhile, and will be sent again
			if empty(b) {
				continue
			}
			sum := sha256.Sum256(b)
			short := [16]byte(sum[:16])
			if k.sums != nil {
				k.sums[n] = short
			}
			if had, ok := was[n]; ok && had == short {
				continue
			}
			r.Bytes += int64(len(b))
			if err := r.conn.frame(content, number(n*blockSize), b); err != nil {
				return err
			}
		}
		return nil
	})
}

func empty(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }
