package image

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// What a build needs at least, found by building: below that it is not begun.
const (
	baseRoom  = 400 << 20
	layerRoom = 256 << 20
)

func freeBytes(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", path, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// A disk is the file system of a store, with the room that is left on it.
type disk struct {
	dir  string
	free func(path string) (uint64, error) // bytes free on the file system of a path
}

// spare returns how many bytes an import may take, so that a build has what it needs besides.
func (d *disk) spare() int64 {
	free, err := d.free(d.dir)
	if err != nil {
		return math.MaxInt64 // it will show
	}
	return int64(min(free-min(free, baseRoom/2), math.MaxInt64))
}

// room returns a problem if there is no room for a build that needs so many bytes.
func (d *disk) room(need uint64) error {
	free, err := d.free(d.dir)
	if err != nil {
		return err
	}
	if free < need {
		return d.full(need)
	}
	return nil
}

func (d *disk) full(need uint64) *problem.Problem {
	free, _ := d.free(d.dir)
	return problem.New(problem.Unable, "the disk of %s is full: %s free, a build needs at least %s", d.dir, size(free),
		size(need)).
		Try("remove layers that nothing uses with `orrery image gc`, or make room")
}

// explain makes a full disk, which shows itself in many ways, the problem that it is.
func (d *disk) explain(err error, need uint64) error {
	var p *problem.Problem
	if err == nil || errors.As(err, &p) && p.Kind == problem.Unable {
		return err
	}
	if problem.DiskFull(err) || strings.Contains(err.Error(), unix.ENOSPC.Error()) ||
		strings.Contains(err.Error(), "No space left on device") ||
		strings.Contains(err.Error(), "don't have enough free space") {
		return d.full(need).Because(err)
	}
	return err
}

// size writes bytes for people.
func size(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	default:
		return fmt.Sprintf("%d KiB", n>>10)
	}
}
