package treesync

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// file sends a regular file. If a large file was sent before, it sends only the blocks that have
// changed. A process that has mapped the file can change a page without updating the modification
// time until the page is written to disk. So file writes the pages to disk first.
func (r *pass) file(e *tree.Entry, k *fileState) error {
	f, st, err := tree.OpenEntry(e.Dir, e.Name)
	if err != nil {
		return err
	}
	defer unix.Close(f) //nolint:errcheck // it was only read
	if !r.still {
		const whole = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
		if err := unix.SyncFileRange(f, 0, 0, whole); err != nil && !errors.Is(err, unix.EINVAL) &&
			!errors.Is(err, unix.ENOSYS) {
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
	current := stateOf(&st)
	sent.Size, sent.Patch = st.Size, k.sums != nil && (k.kept || k.state.ino == current.ino) && current.links == 1
	var old map[int64]blockSum
	if sent.Patch {
		old = k.sums
	}
	k.sums, k.kept = nil, false
	if err := r.conn.writeJSON(fileStart, sent); err != nil {
		return err
	}
	sums, err := r.blocks(f, &st, old)
	if err != nil {
		return err
	}
	for n := range old {
		if _, ok := sums[n]; !ok && n >= 0 && n < (st.Size+blockSize-1)/blockSize {
			if err := r.conn.frame(hole, encodeOffset(n*blockSize),
				encodeOffset(min(blockSize, st.Size-n*blockSize))); err != nil {
				return err
			}
		}
	}
	if st.Size >= minPatchSize {
		k.sums = sums
	}
	k.state = r.stableState(current, &st)
	return r.conn.writeJSON(fileEnd, sent)
}

func encodeOffset(n int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(n))
} //nolint:gosec // it is an offset

// blocks sends the blocks of a file that have changed and are not holes. It returns the digests of
// all blocks that are not holes.
func (r *pass) blocks(f int, st *unix.Stat_t, old map[int64]blockSum) (map[int64]blockSum, error) {
	sums := map[int64]blockSum{}
	err := eachBlock(r.ctx, f, st.Size, r.buffer, func(n int64, b []byte, sum blockSum) error {
		sums[n] = sum
		if before, ok := old[n]; ok && before == sum {
			return nil
		}
		r.Bytes += int64(len(b))
		return r.conn.frame(content, encodeOffset(n*blockSize), b)
	})
	return sums, err
}

func isZero(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }
