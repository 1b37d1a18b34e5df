package disk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// A workspace holds what the programs have in common: a directory for each copy, the abilities of its
// file system, and the check for free space.
type workspace struct {
	options
	known sync.Map // floors by place and directory
}

// A workDir holds what is known about the directory of a copy.
type workDir struct {
	dir    string
	direct bool  // O_DIRECT is used
	can    bool  // the file system supports O_DIRECT
	memory int64 // memory of the place in bytes, most of which can be page cache
}

// dir returns the directory of a copy.
func dir(t *test.Trial) string { return path.Join(t.Near.Dir, strconv.Itoa(t.Copy)) }

func cacheKey(t *test.Trial) string { return t.Near.Name + "\x00" + t.Near.Node + "\x00" + dir(t) }

// forget discards what is known about the directory of a trial. When nodes are recreated, their
// directories no longer exist.
func (g *workspace) forget(t *test.Trial) { g.known.Delete(cacheKey(t)) }

// prepareDir creates the directory of a trial and examines it. The result is cached.
func (g *workspace) prepareDir(ctx context.Context, t *test.Trial) (workDir, error) {
	if known, ok := g.known.Load(cacheKey(t)); ok {
		return known.(workDir), nil
	}
	f := workDir{dir: dir(t)}
	if err := shell(ctx, t.Near, `mkdir -p "$1"`, f.dir); err != nil {
		return f, problem.New(problem.Failed, "the directory %s cannot be created", f.dir).At(t.Near.Name).Because(err)
	}
	var err error
	if f.can, err = supportsDirect(ctx, t.Near, f.dir); err != nil {
		return f, err
	}
	if g.Direct == directYes && !f.can {
		return f, problem.New(problem.Unable, "the file system of %s does not support O_DIRECT", f.dir).At(t.Near.Name).
			Try(`set direct = "auto", or measure on another file system`)
	}
	f.direct = f.can && g.Direct != directNo
	if f.memory, err = memTotal(ctx, t.Near); err != nil {
		return f, err
	}
	g.known.Store(cacheKey(t), f)
	return f, nil
}

// supportsDirect reports whether a file can be written with O_DIRECT, that is past the page cache. open(2)
// fails with EINVAL if the file system does not support it.
func supportsDirect(ctx context.Context, p *place.Place, dir string) (bool, error) {
	file := path.Join(dir, "o_direct")
	err := shell(ctx, p, `LC_ALL=C dd if=/dev/zero of="$1" bs=64k count=1 oflag=direct status=none; status=$?; rm -f "$1"; exit $status`,
		file)
	if run := (*host.RunError)(nil); errors.As(err, &run) && strings.Contains(run.Output, "Invalid argument") {
		return false, nil
	}
	if err != nil {
		return false, problem.New(problem.Failed, "files cannot be written in %s", dir).At(p.Name).Because(err)
	}
	return true, nil
}

// memTotal returns MemTotal of a place, in bytes (proc(5)).
func memTotal(ctx context.Context, p *place.Place) (int64, error) {
	out, err := place.Output(ctx, p, "/bin/cat", "/proc/meminfo")
	if err == nil {
		for line := range strings.Lines(string(out)) {
			var kib int64
			if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &kib); n == 1 {
				return kib << 10, nil
			}
		}
		err = errors.New("MemTotal is missing")
	}
	return 0, problem.New(problem.Failed, "/proc/meminfo cannot be read").At(p.Name).Because(err)
}

// checkSpace checks that there is enough space for the files of this copy and of the copies checked after
// it.
func (g *workspace) checkSpace(ctx context.Context, t *test.Trial, dir string, file test.Bytes) error {
	out, err := place.Output(ctx, t.Near, "stat", "-f", "-c", "%a %S %b", dir)
	var blocks, size, all int64
	if err == nil {
		if _, err = fmt.Sscan(string(out), &blocks, &size, &all); err == nil {
			copies := int64(max(t.Of-t.Copy, 1))
			if need := copies * int64(file); all > 0 && blocks*size < need { // ramfs reports no size
				return problem.New(problem.Unable, "%d bytes are free on the disk of %s, but %d are needed (%d × %s)",
					blocks*size, dir, need, copies, file).
					At(t.Near.Name).Try("decrease size, free space, or measure in a directory on a larger disk")
			}
			return nil
		}
	}
	return problem.New(problem.Failed, "the free space in %s cannot be determined", dir).At(t.Near.Name).Because(err)
}

// labels returns warnings about figures of files in the page cache.
func (f workDir) labels(g *workspace) []test.Label {
	var all []test.Label
	if !f.can {
		all = append(all, test.Label{
			Name: "o_direct", Why: "the file system of " + f.dir +
				" does not support O_DIRECT: writes end with fsync, and reads may come from memory",
			Cure: "measure on a file system that supports it, such as ext4 or xfs",
		})
	}
	if !f.direct && int64(g.Size) < f.memory {
		all = append(all, test.Label{
			Name: "page-cache", Why: fmt.Sprintf("the file has %d bytes, and the page cache can have %d", int64(g.Size), f.memory),
			Cure: fmt.Sprintf("use O_DIRECT, or set size to at least %d", 2*f.memory),
		})
	}
	return all
}

// shell runs a script in a place. The words are $1 and so on.
func shell(ctx context.Context, p *place.Place, script string, words ...string) error {
	_, err := place.Output(ctx, p, append([]string{"/bin/sh", "-c", script, "sh"}, words...)...)
	return err
}
