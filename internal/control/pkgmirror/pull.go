package pkgmirror

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// Result is the result of a pull.
type Result struct {
	Debian, Python int   // number of packages in the layers
	Cached         int   // packages taken from the cache of the builders
	Fetched        int   // packages fetched from archives and indexes
	Bytes          int64 // added bytes
	Removed        int   // number of removed files that no layer needs
}

// Changed reports whether anything was added.
func (p *Result) Changed() bool { return p.Cached+p.Fetched > 0 }

// A run is a pull in progress.
type run struct {
	*Mirror
	debs   *debs
	wheels *wheels
	done   *Result
}

// Pull adds what layers consist of to the mirror, and publishes it. It resumes a pull that was
// interrupted. What no layer needs any more stays unless prune is set.
func (m *Mirror) Pull(ctx context.Context, layers []*Layer, prune bool) (*Result, error) {
	release, err := m.lockDir(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	debs, err := readDebs(m.apt())
	if err != nil {
		return nil, err
	}
	wheels, err := readWheels(m.simple())
	if err != nil {
		return nil, err
	}
	done := &Result{}
	r := &run{m, debs, wheels, done}
	var lost []string
	all := needs(layers)
	if err := validateNeeds(all); err != nil {
		return nil, err
	}
	done.Debian, done.Python = countDistinct(all)
	for _, n := range all {
		gone, err := r.fetchMissing(ctx, n)
		if err != nil {
			return done, err
		}
		lost = append(lost, gone...)
	}
	if prune {
		built, err := os.ReadFile(m.forBuildsPath())
		if err != nil && !os.IsNotExist(err) {
			return done, err
		}
		debs.prune(layers)
		wheels.prune(layers, strings.Fields(string(built)))
	}
	if err := r.publishDebs(ctx, suites(layers)); err != nil {
		return done, err
	}
	if err := wheels.publish(); err != nil {
		return done, err
	}
	if done.Removed, err = removeDoomed(append(debs.doomed, wheels.doomed...)); err != nil {
		return done, err
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		return done, problem.New(problem.Left, "%d packages are no longer in any archive: %s", len(lost),
			strings.Join(slices.Compact(lost), " ")).
			Try("rebuild the layers from current packages: orrery image gc, then orrery mirror pull again")
	}
	return done, os.RemoveAll(m.incoming())
}

// countDistinct counts the packages that layers need, each once.
func countDistinct(all []need) (debian, python int) {
	seen := map[string]bool{}
	for _, n := range all {
		for _, p := range n.debian {
			if key := n.layer.Suite + " " + p.String(); !seen[key] {
				seen[key] = true
				debian++
			}
		}
		for _, p := range n.python {
			if key := n.layer.Runs + " == " + p.String(); !seen[key] {
				seen[key] = true
				python++
			}
		}
	}
	return debian, python
}

// fetchMissing gets what the mirror lacks for one layer. It returns the packages that are not available
// anywhere.
func (r *run) fetchMissing(ctx context.Context, n need) (lost []string, err error) {
	missing, err := r.debs.missingDebs(n.layer.Suite, n.debian)
	if err != nil {
		return nil, err
	}
	without, err := r.wheels.missing(n.layer.Runs, n.python)
	if err != nil || len(missing)+len(without) == 0 {
		return nil, err
	}
	r.Progress(fmt.Sprintf("%s: adding %d Debian and %d Python packages", n.layer.Title, len(missing), len(without)))
	err = r.Store.WithContainer(ctx, n.layer.Digest, r.From, r.incoming(),
		func(ctx context.Context, in host.Runner) error {
			if len(missing) > 0 {
				if lost, err = r.supplyDebs(ctx, in, n, missing); err != nil {
					return err
				}
			}
			if len(without) > 0 {
				return r.supplyWheels(ctx, in, n, without)
			}
			return nil
		})
	return lost, err
}

// removeDoomed removes files that are no longer in an index.
func removeDoomed(files []string) (int, error) {
	for _, file := range files {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return 0, err
		}
		_ = os.Remove(filepath.Dir(file)) // if it is empty
	}
	return len(files), nil
}
