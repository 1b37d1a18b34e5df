package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/problem"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// listsAge is how long package lists are used. An update takes seconds, and archives change a few
// times a day.
const listsAge = time.Hour

// Install installs packages in a scratch container without asking questions and without recommended
// packages. All builds share the package lists and packages.
func (c Cache) Install(ctx context.Context, in host.Runner, d *distro.Distribution, packages []string,
	log io.Writer) error {
	if len(packages) == 0 {
		return nil
	}
	if log == nil {
		log = io.Discard
	}
	i, err := c.installer(ctx, in, d, log)
	if err != nil {
		return err
	}
	err = i.withLists(ctx, func() error { return i.install(ctx, packages) })
	if err == nil || ctx.Err() != nil {
		return err
	}
	return notInstalled(d, packages, err)
}

func anyOf(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

func notInstalled(d *distro.Distribution, packages []string, err error) error {
	var p *problem.Problem
	if errors.As(err, &p) {
		return err
	}
	p = problem.New(problem.Failed, "packages could not be installed (%s)", strings.Join(packages, " ")).Because(err)
	if anyOf(err.Error(), d.Packages.Unknown) {
		return p.Try("correct the name in the role's apt list; `components` of the image selects the parts of the archive")
	}
	return p.Try("%s", d.Packages.Unreached)
}

// An installer installs packages in one scratch container, with the package lists for its sources.
type installer struct {
	*distro.Packages
	in      host.Runner
	log     io.Writer
	cache   string // directory of the package cache, on the host
	lists   string // directory of the package lists, on the host
	program []string
}

// installer returns an installer. The lists depend on the sources in the container, because a role
// may have added some.
func (c Cache) installer(ctx context.Context, in host.Runner, d *distro.Distribution, log io.Writer) (*installer,
	error) {
	said, err := host.Output(ctx, in, host.Command{Args: d.Packages.SourcesCommand(access.BuildDir)}, 4<<20)
	if err != nil {
		return nil, problem.New(problem.Failed, "the image has no %s, which its roles' packages need", d.Packages.Needs).
			Because(err)
	}
	key := spec.DigestBytes(said)
	i := &installer{
		Packages: d.Packages, in: in, log: log, cache: filepath.Dir(c.archives()), lists: filepath.Join(c.lists(), key),
		program: d.Packages.Program(access.BuildDir, key),
	}
	return i, os.MkdirAll(filepath.Join(i.lists, "partial"), 0o755)
}

func (i *installer) run(ctx context.Context, order []string, packages ...string) error {
	order = slices.Concat(order, packages)
	err := i.in.Run(ctx, host.Command{Args: slices.Concat(i.program, order), Stdout: i.log, Stderr: i.log})
	var run *host.RunError
	if errors.As(err, &run) {
		shorten(run, append(i.program[:1:1], order...)...)
	}
	return err
}

// install downloads and installs packages.
func (i *installer) install(ctx context.Context, packages []string) error {
	if err := i.withPackageLock(ctx, func() error { return i.run(ctx, i.Packages.Fetch, packages...) }); err != nil {
		return err
	}
	return i.run(ctx, i.Packages.Install, packages...)
}

// withPackageLock calls do, which downloads packages, while it holds their lock. Two builds at once would
// write the same files.
func (i *installer) withPackageLock(ctx context.Context, do func() error) error {
	held, err := host.WaitLock(ctx, filepath.Join(i.cache, "archives.lock"), host.Exclusive,
		"the lock of downloaded packages")
	if err != nil {
		return err
	}
	defer held.Release()
	return do()
}

// withLists calls do while no process updates the package lists. Other builds may read them at the
// same time. If an error suggests that packages have left the archive, it updates the lists and
// calls do again.
func (i *installer) withLists(ctx context.Context, do func() error) error {
	for fresh := false; ; fresh = true {
		reading, err := i.readLists(ctx, fresh)
		if err == nil {
			err = do()
			reading.Release()
		}
		if err == nil || ctx.Err() != nil || fresh || !anyOf(err.Error(), i.Outdated) {
			return err
		}
		fmt.Fprintln(i.log, "orrery: trying again with fresh package lists")
	}
}

// readLists returns a lock of the package lists. It updates lists that are missing or older than
// listsAge, or that were not updated during this call if fresh is set.
func (i *installer) readLists(ctx context.Context, fresh bool) (*host.Lock, error) {
	const lists = "the lock of the package lists"
	file, stamp := i.lists+".lock", filepath.Join(i.lists, "orrery-updated")
	asked := time.Now()
	for {
		l, err := host.WaitLock(ctx, file, host.Shared, lists)
		if err != nil {
			return nil, err
		}
		good := func() (have, young bool) {
			info, err := os.Stat(stamp)
			if err != nil {
				return false, false
			}
			age := time.Since(info.ModTime()) // below 0 if the clock was set back
			return true, age >= 0 && age < listsAge && (!fresh || info.ModTime().After(asked))
		}
		if _, young := good(); young {
			return l, nil
		}
		l.Release()
		if l, err = host.WaitLock(ctx, file, host.Exclusive, lists); err != nil {
			return nil, err
		}
		if have, young := good(); !young {
			err := i.run(ctx, i.Update)
			if err == nil {
				err = os.WriteFile(stamp, nil, 0o644)
			} else if have && !fresh && ctx.Err() == nil {
				fmt.Fprintln(i.log, "orrery: the package lists could not be updated; continuing with the old ones")
				l.Release()
				return host.WaitLock(ctx, file, host.Shared, lists)
			}
			if err != nil {
				l.Release()
				return nil, err
			}
		}
		l.Release()
	}
}
