package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// listsAge is for how long package lists are good: an update takes seconds, and archives change a few times a day.
const listsAge = time.Hour

// InstallApt installs Debian packages in a scratch container, asking nothing and taking nothing that is only recommended.
// Package lists and packages are shared with all other builds.
func (s *Store) InstallApt(ctx context.Context, in host.Runner, packages []string, log io.Writer) error {
	if len(packages) == 0 {
		return nil
	}
	if log == nil {
		log = io.Discard
	}
	a, err := s.aptOf(ctx, in, log)
	if err != nil {
		return err
	}
	for fresh := false; ; fresh = true {
		err := a.install(ctx, packages, fresh)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// Packages that the lists name may have left the archive since, and new ones come.
		if fresh || !anyOf(err.Error(), "404", "Unable to fetch", "Failed to fetch", "Hash Sum mismatch", "Unable to locate", "has no installation candidate", "not found") {
			return aptProblem(packages, err)
		}
		fmt.Fprintln(log, "orrery: once more, with fresh package lists")
	}
}

func anyOf(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func aptProblem(packages []string, err error) error {
	var p *problem.Problem
	if errors.As(err, &p) {
		return err
	}
	p = problem.New(problem.Failed, "packages could not be installed (%s)", strings.Join(packages, " ")).Because(err)
	if anyOf(err.Error(), "Unable to locate", "no installation candidate") {
		return p.Try("correct the name in the role's apt list; `components` of the image says which parts of the archive are used")
	}
	return p.Try("see whether `apt-get update` works on this host; [mirror] in site.toml names other archives")
}

// An apt is the apt of one scratch, with the package lists for its sources.
type apt struct {
	store *Store
	in    host.Runner
	log   io.Writer
	lists string // directory of the lists, on the host
	args  []string
}

// aptOf finds the lists by what the scratch's sources say: a role may have brought some of its own.
func (s *Store) aptOf(ctx context.Context, in host.Runner, log io.Writer) (*apt, error) {
	said, err := host.Output(ctx, in, host.Command{Args: []string{"sh", "-c",
		`dpkg --print-architecture --print-foreign-architectures
		f=` + access.InScratch + `/sources.list; [ -e $f ] || f=/etc/apt/sources.list; cat $f /etc/apt/sources.list.d/* 2>/dev/null; true`}}, 4<<20)
	if err != nil {
		return nil, problem.New(problem.Failed, "the image has no dpkg and apt, which its roles' packages need").Because(err)
	}
	key := spec.DigestBytes(said)
	there := access.InScratch + "/lists/" + key
	a := &apt{store: s, in: in, log: log, lists: filepath.Join(s.lists(), key), args: []string{
		"-o", "Dir::State::Lists=" + there,
		"-o", "Dir::Cache::Archives=" + access.InScratch + "/archives",
		// The parsed lists are shared as well; the cache that is merged from them and the container's own state is not worth writing.
		"-o", "Dir::Cache::srcpkgcache=" + there + "/srcpkgcache.bin", "-o", "Dir::Cache::pkgcache=",
	}}
	return a, os.MkdirAll(filepath.Join(a.lists, "partial"), 0o755)
}

func (a *apt) get(ctx context.Context, args ...string) error {
	args = append(append([]string{"apt-get", "-qq"}, a.args...), args...)
	err := a.in.Run(ctx, host.Command{Args: args, Stdout: a.log, Stderr: a.log})
	var run *host.RunError
	if errors.As(err, &run) {
		shorten(run, append([]string{"apt-get"}, args[2+len(a.args):]...)...)
	}
	return err
}

// install fetches and installs packages. Others may install at the same time, but lists are not updated meanwhile.
func (a *apt) install(ctx context.Context, packages []string, fresh bool) error {
	reading, err := a.readLists(ctx, fresh)
	if err != nil {
		return err
	}
	defer reading.Release()
	// One build fetches at a time: two would write the same files.
	fetching, err := host.WaitLock(ctx, filepath.Join(a.store.Cache, "apt", "archives.lock"), host.Alone, nil)
	if err != nil {
		return err
	}
	err = a.get(ctx, append([]string{"-y", "--download-only", "install"}, packages...)...)
	fetching.Release()
	if err != nil {
		return err
	}
	return a.get(ctx, append([]string{"-y", "--no-download", "-o", "Debug::NoLocking=1", "install"}, packages...)...)
}

// readLists makes sure that there are package lists, not older than listsAge (or than now, if fresh), and holds them.
func (a *apt) readLists(ctx context.Context, fresh bool) (*host.Lock, error) {
	file, stamp := a.lists+".lock", filepath.Join(a.lists, "orrery-updated")
	asked := time.Now()
	for {
		l, err := host.WaitLock(ctx, file, host.Shared, nil)
		if err != nil {
			return nil, err
		}
		good := func() (have, young bool) {
			info, err := os.Stat(stamp)
			if err != nil {
				return false, false
			}
			return true, time.Since(info.ModTime()) < listsAge && (!fresh || info.ModTime().After(asked))
		}
		if _, young := good(); young {
			return l, nil
		}
		l.Release()
		if l, err = host.WaitLock(ctx, file, host.Alone, nil); err != nil {
			return nil, err
		}
		if have, young := good(); !young {
			err := a.get(ctx, "-o", "APT::Update::Error-Mode=any", "update")
			if err == nil {
				err = os.WriteFile(stamp, nil, 0o644)
			} else if have && !fresh && ctx.Err() == nil {
				fmt.Fprintln(a.log, "orrery: the package lists could not be updated; going on with those of before")
				l.Release()
				return host.WaitLock(ctx, file, host.Shared, nil)
			}
			if err != nil {
				l.Release()
				return nil, err
			}
		}
		l.Release()
	}
}
