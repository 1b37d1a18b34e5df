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

// file sends a regular file; of a large one that was sent before, only what is another now. A process that has it mapped can change a page without the time of change as long as that has not been written to disk: so
// the pages are written first.
func (r *round) file(e *tree.Entry, k *known) error {
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
	if st.Size >= large {
		k.sums = map[int64][16]byte{}
	}
	if err := r.line.tell(opened, sent); err != nil {
		return err
	}
	if err := r.pieces(f, &st, k, was); err != nil {
		return err
	}
	for n := range was {
		if _, stays := k.sums[n]; !stays && n*piece < st.Size {
			if err := r.line.frame(cleared, number(n*piece), number(min(piece, st.Size-n*piece))); err != nil {
				return err
			}
		}
	}
	k.state = r.sure(is, &st)
	return r.line.tell(closed, sent)
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) } //nolint:gosec // it is an offset

// pieces sends the pieces of a file in which there is something, but those that are as they were.
func (r *round) pieces(f int, st *unix.Stat_t, k *known, was map[int64][16]byte) error {
	next := int64(0) // the first piece that has not been looked at
	return tree.EachData(f, st.Size, func(from, to int64) error {
		for n := max(next, from/piece); n*piece < to; n++ {
			next = n + 1
			if r.ctx.Err() != nil {
				return context.Cause(r.ctx)
			}
			b := r.buffer[:min(piece, st.Size-n*piece)]
			got, err := tree.ReadAt(f, b, n*piece)
			if err != nil {
				return err
			}
			clear(b[got:]) // it has been cut off meanwhile: it will be sent again
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
			if err := r.line.frame(content, number(n*piece), b); err != nil {
				return err
			}
		}
		return nil
	})
}

func empty(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }
