package pkgmirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/problem"
	"orrery/internal/volume"
)

// pockets are the parts of a release in Debian's archive. The mirror has everything in the first.
var pockets = []string{"", "-updates", "-security"}

// unpublishedPrefix is the prefix of an index that is not complete yet.
const unpublishedPrefix = ".dists-"

// publishDebs replaces the index by one of all packages in the pool, if it changes.
func (r *run) publishDebs(ctx context.Context, wanted map[string][]string) error {
	for suite := range wanted {
		if _, err := os.Stat(filepath.Join(r.apt(), "dists", suite, "InRelease")); err != nil {
			r.debs.changed = true
		}
		for _, component := range wanted[suite] {
			if _, err := os.Stat(filepath.Join(r.apt(), "dists", suite, component)); err != nil {
				r.debs.changed = true
			}
		}
	}
	if !r.debs.changed {
		return nil
	}
	if _, err := exec.LookPath("apt-ftparchive"); err != nil {
		return problem.New(problem.Unable, "apt-ftparchive is not installed on this host").Try("apt-get install apt-utils")
	}
	r.Progress("writing the index of the Debian packages")
	if err := keyring(r.Keys).writeKey(ctx, filepath.Join(r.apt(), access.MirrorKeyFile)); err != nil {
		return err
	}
	fresh := filepath.Join(r.apt(), fmt.Sprintf("%s%d", unpublishedPrefix, os.Getpid()))
	defer os.RemoveAll(fresh) //nolint:errcheck // the next run does it
	all, err := r.debs.inPool(wanted)
	if err != nil {
		return err
	}
	for _, suite := range slices.Sorted(maps.Keys(all)) {
		if err := r.publishSuite(ctx, fresh, suite, all[suite]); err != nil {
			return err
		}
	}
	return r.debs.replaceIndex(fresh)
}

// inPool returns the suites that the mirror has or will have, with their components.
func (d *debs) inPool(wanted map[string][]string) (map[string][]string, error) {
	all := maps.Clone(wanted)
	dirs, err := os.ReadDir(filepath.Join(d.archive, "pool"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, dir := range dirs {
		existing, err := filepath.Glob(filepath.Join(d.archive, "dists", dir.Name(), "*", "binary-*"))
		if err != nil {
			return nil, err
		}
		components := append([]string{"main"}, all[dir.Name()]...)
		for _, path := range existing {
			components = append(components, filepath.Base(filepath.Dir(path)))
		}
		slices.Sort(components)
		all[dir.Name()] = slices.Compact(components)
	}
	return all, nil
}

func (r *run) publishSuite(ctx context.Context, dists, suite string, components []string) error {
	pool := filepath.Join("pool", suite)
	overrides := filepath.Join(r.apt(), "indices", "override."+suite)
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.debs.overrides[suite])) {
		o := r.debs.overrides[suite][name]
		fmt.Fprintf(&list, "%s %s %s\n", name, o.priority, o.section)
	}
	if err := host.WriteFile(host.File{Path: overrides, Content: []byte(list.String()), Mode: 0o644}); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(r.apt(), pool), 0o755); err != nil {
		return err
	}
	archs, err := r.debs.architectures(pool)
	if err != nil {
		return err
	}
	for _, pocket := range pockets {
		dir := filepath.Join(dists, suite+pocket)
		for i, component := range components {
			for _, arch := range archs {
				var index []byte
				if i == 0 && pocket == "" {
					if index, err = tool(ctx, r.apt(), "apt-ftparchive", "--arch", arch, "packages", pool, overrides); err != nil {
						return err
					}
				}
				text := r.debs.remaining(string(index))
				if err := writeIndex(ctx, filepath.Join(dir, component, "binary-"+arch), text); err != nil {
					return err
				}
			}
		}
		if err := release(ctx, dir, suite+pocket, components, archs); err != nil {
			return err
		}
		if err := keyring(r.Keys).sign(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

// architectures returns the architectures of the packages in a pool, and this host's.
func (d *debs) architectures(pool string) ([]string, error) {
	archs := []string{architecture()}
	err := filepath.WalkDir(filepath.Join(d.archive, pool), func(path string, _ fs.DirEntry, err error) error {
		stem, deb := strings.CutSuffix(filepath.Base(path), ".deb")
		if arch := stem[strings.LastIndexByte(stem, '_')+1:]; err == nil && deb && arch != "all" {
			archs = append(archs, arch)
		}
		return err
	})
	slices.Sort(archs)
	return slices.Compact(archs), err
}

func writeIndex(ctx context.Context, dir, text string) error {
	path := filepath.Join(dir, "Packages")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	return host.Exec(ctx, "this host", []string{"gzip", "--keep", "--no-name", path},
		host.Command{Args: []string{"gzip", path}}, nil)
}

// release writes the Release file of a suite, which apt reads first and which has the digests of
// all indexes.
func release(ctx context.Context, dir, suite string, components, archs []string) error {
	args := []string{"apt-ftparchive", "-o", "APT::FTPArchive::DoByHash=true"}
	for _, field := range [][2]string{
		{"Origin", "Orrery"}, {"Label", "Orrery"}, {"Suite", suite}, {"Codename", suite}, {"Acquire-By-Hash", "yes"},
		{"Components", strings.Join(components, " ")}, {"Architectures", strings.Join(archs, " ")},
	} {
		args = append(args, "-o", "APT::FTPArchive::Release::"+field[0]+"="+field[1])
	}
	text, err := tool(ctx, dir, append(args, "release", ".")...)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "Release"), text, 0o644)
}

// replaceIndex replaces the index atomically. A client that has begun to read the former index finds
// its parts under their digests for another day.
func (d *debs) replaceIndex(fresh string) error {
	place := filepath.Join(d.archive, "dists")
	if err := linkOldParts(place, fresh, time.Now().Add(-24*time.Hour)); err != nil {
		return err
	}
	if err := volume.Sync(fresh); err != nil {
		return err
	}
	return host.Replace(fresh, place)
}

// linkOldParts links the parts of a former index, which are named by digest, into the new one.
func linkOldParts(former, fresh string, since time.Time) error {
	return filepath.WalkDir(former, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() || !strings.Contains(path, "/by-hash/") {
			return err
		}
		info, err := e.Info()
		if err != nil || info.ModTime().Before(since) {
			return err
		}
		to := fresh + strings.TrimPrefix(path, former)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Link(path, to); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
}

// tool runs a program of this host in a directory and returns its output.
func tool(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return host.Output(ctx, inDir{dir: dir}, host.Command{Args: args}, maxIndexBytes)
}

// maxIndexBytes is the maximum size of an index of the archive.
const maxIndexBytes = 512 << 20

// inDir runs commands in a directory of this host.
type inDir struct {
	host.Local
	dir string
}

// Run runs the command in the directory.
func (i inDir) Run(ctx context.Context, c host.Command) error {
	return host.Exec(ctx, "this host", c.Args, c, func(cmd *exec.Cmd) { cmd.Dir = i.dir })
}
