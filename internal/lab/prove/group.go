package prove

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// cpuLoader returns the loader of a node's processors: one thread more than the limit allows.
func cpuLoader(ctx context.Context, t *Target, l Limit, seconds float64) (*loader, error) {
	have := runtime.NumCPU()
	if n := len(site.ListProcessors(t.Limits.Pin)); n > 0 {
		have = min(have, n)
	}
	if l.Value >= float64(have) {
		return nil, problem.New(problem.Unable, "the limit allows all %d processors of the node", have)
	}
	return &loader{
		start: func() (load, error) {
			spin := min(int(math.Ceil(l.Value))+1, have)
			return startChild(ctx, &t.Group, nil, order{Spin: spin, Seconds: lifetime(seconds)})
		},
		count: func() (float64, error) {
			s := host.ReadSample(t.Group.Name())
			if s.CPU < 0 {
				return 0, problem.New(problem.Unable, "the host does not count the processor time of control groups")
			}
			return s.CPU.Seconds(), nil
		},
		periods: func() (all, stopped uint64) { return cgroup.PeriodsOf(t.Group) },
		settle:  300 * time.Millisecond,
	}, nil
}

// A diskLoad is how a limit of disks is loaded.
type diskLoad struct {
	order
	file *os.File
	unit float64 // bytes of each request, or 1 if requests are counted
}

const (
	smallBlock  = 4 << 10
	rateThreads = 4
	iopsThreads = 16
)

// newDiskLoad returns the load for a limit of disks, with an unnamed file in dir. The caller closes the file.
func newDiskLoad(ctx context.Context, dir string, l Limit, seconds float64) (*diskLoad, error) {
	d := &diskLoad{unit: 1}
	d.Write = l.Kind == Write || l.Kind == WriteIOPS
	switch l.Kind {
	case Read, Write:
		d.Block = unitsOf(l.Value, seconds, smallBlock, maxBlock) &^ (smallBlock - 1)
		if l.other > 0 { // as few requests as possible
			d.Block = maxBlock
		}
		d.unit, d.Threads = float64(d.Block), rateThreads
		if l.other > 0 && l.Value*(1+holds) > l.other*maxBlock {
			return nil, problem.New(problem.Unable, "disk.iops of the node ends its requests first")
		}
	default:
		d.Block, d.Threads, d.Random = smallBlock, iopsThreads, true
		if l.other > 0 && l.Value*(1+holds)*smallBlock > l.other {
			return nil, problem.New(problem.Unable, "the limit of bytes ends its requests of 4 KiB first")
		}
	}
	d.Rate, d.Seconds = excess*l.Value/d.unit, lifetime(seconds)
	var err error
	if d.file, err = openLoadFile(ctx, dir); err != nil {
		return nil, err
	}
	return d, nil
}

// openLoadFile returns an unnamed file on the disk of dir, full of data, that bypasses the page cache.
func openLoadFile(ctx context.Context, dir string) (*os.File, error) {
	cannot := func(err error) error {
		p := problem.New(problem.Unable, "its disk takes no load").At(dir).Because(err)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
			return p.Try("keep Orrery's state on a file system with O_DIRECT and O_TMPFILE, such as ext4, XFS or btrfs")
		}
		return p
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, cannot(err)
	}
	f := os.NewFile(uintptr(fd), fmt.Sprintf("load in %s", dir))
	data := aligned(maxBlock)
	for at := int64(0); at < fileSize; at += maxBlock {
		if err = ctx.Err(); err == nil {
			_, err = f.WriteAt(data, at)
		}
		if err != nil {
			f.Close()
			return nil, cannot(err)
		}
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return nil, cannot(err)
	}
	return f, nil
}

// loader returns the loader of a node's disk. It counts what the node's control group has read or
// written, on the disk on which that was most since the loader was made.
func (d *diskLoad) loader(ctx context.Context, t *Target, l Limit) *loader {
	first := cgroup.DiskUseOf(t.Group)
	return &loader{
		start: func() (load, error) { return startChild(ctx, &t.Group, d.file, d.order) },
		count: func() (float64, error) {
			most := -1.0
			for device, use := range cgroup.DiskUseOf(t.Group) {
				n := part(use, l.Kind) - part(first[device], l.Kind)
				most = max(most, n)
			}
			if most <= 0 {
				return 0, problem.New(problem.Unable, "no disk of the host counts what the node reads and writes").
					Try("keep Orrery's state on a disk")
			}
			return most, nil
		},
		settle: 700 * time.Millisecond,
	}
}

// part returns what a limit is about.
func part(u cgroup.DiskUse, kind string) float64 {
	switch kind {
	case Read:
		return float64(u.Read)
	case Write:
		return float64(u.Written)
	case ReadIOPS:
		return float64(u.Reads)
	default:
		return float64(u.Writes)
	}
}

// without returns what the same load gets outside of the node's control group.
func (d *diskLoad) without(ctx context.Context, seconds float64) (float64, error) {
	c, err := startChild(ctx, nil, d.file, d.order)
	if err != nil {
		return 0, err
	}
	err = host.Sleep(ctx, time.Duration(seconds*float64(time.Second)))
	if ended := c.end(); err == nil {
		err = ended
	}
	if err != nil {
		return 0, err
	}
	return c.requests * d.unit, nil
}
