package image

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// Minimum free space for a build, found by measurement. With less, the build does not start.
const (
	minBaseSpace  = 400 << 20
	minLayerSpace = 256 << 20
)

func freeBytes(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", path, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// A disk is the file system of a store.
type disk struct {
	dir  string
	free func(path string) (uint64, error) // returns the free bytes on the file system of a path
}

// importSpace returns how many bytes an import may use. It leaves space for a build.
func (d *disk) importSpace() int64 {
	free, err := d.free(d.dir)
	if err != nil {
		return math.MaxInt64 // the import itself will report the error
	}
	return int64(min(free-min(free, minBaseSpace/2), math.MaxInt64))
}

// checkSpace returns a problem if there are fewer than need bytes free.
func (d *disk) checkSpace(need uint64) error {
	free, err := d.free(d.dir)
	if err != nil {
		return err
	}
	if free < need {
		return d.fullProblem(need)
	}
	return nil
}

func (d *disk) fullProblem(need uint64) *problem.Problem {
	free, _ := d.free(d.dir)
	return problem.New(problem.Unable, "the disk of %s is full: %s free, a build needs at least %s", d.dir,
		formatSize(free),
		formatSize(need)).
		Try("remove unused layers with `orrery image gc`, or make room")
}

// explain replaces an error that was caused by a full disk, which appears in many forms, by a
// problem that says so.
func (d *disk) explain(err error, need uint64) error {
	var p *problem.Problem
	if err == nil || errors.As(err, &p) && p.Kind == problem.Unable {
		return err
	}
	if problem.DiskFull(err) || strings.Contains(err.Error(), unix.ENOSPC.Error()) ||
		strings.Contains(err.Error(), "No space left on device") ||
		strings.Contains(err.Error(), "don't have enough free space") {
		return d.fullProblem(need).Because(err)
	}
	return err
}

// formatSize formats a number of bytes for people.
func formatSize(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	default:
		return fmt.Sprintf("%d KiB", n>>10)
	}
}
