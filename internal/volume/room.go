package volume

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// A full disk harms everything that runs, not only a copy. So copying stops before the disk is
// full.
const (
	reservedBytes      = 256 << 20 // bytes that stay free, but at most a part of the disk
	reservedDivisor    = 50        // divisor for that part
	spaceCheckInterval = 16 << 20  // free space is checked again after this many bytes
)

// checkSpace returns an error if the file system of the copy has too little free space for a file of a size.
func (r *round) checkSpace(fd int, size int64) error {
	if r.unasked += size; r.unasked < spaceCheckInterval && r.asked {
		return nil
	}
	r.asked, r.unasked = true, 0
	free, total, ok := diskSpace(fd)
	if keep := min(reservedBytes, total/reservedDivisor); ok && free-keep < size {
		return asCopyError("", fmt.Errorf("%d MiB are free, %d MiB of them are reserved, and a file needs %d MiB: %w",
			free>>20,
			keep>>20, size>>20, unix.ENOSPC))
	}
	return nil
}

// hasSpace reports whether the copy's file system has free space.
func (r *round) hasSpace() bool {
	free, _, ok := diskSpace(r.copied.Fd())
	return ok && free > 1<<20
}

func diskSpace(fd int) (free, total int64, ok bool) {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil || st.Blocks == 0 {
		return 0, 0, false // the size is unlimited or unknown
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, true
}

// CopyProblem returns the problem that a tree cannot be copied, with what the user can do.
func CopyProblem(from string, err error) error {
	var p *problem.Problem
	switch {
	case problem.DiskFull(err):
		return problem.New(problem.Unable, "not enough room to copy it").At(from).Because(err).
			Try("make room: orrery snapshot rm, orrery image gc")
	case errors.As(err, &p):
		return problem.New(p.Kind, "it cannot be copied").At(from).Because(err)
	}
	return problem.New(problem.Failed, "it cannot be copied").At(from).Because(err)
}
