package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/text/humanize"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

// Forget removes all that this host keeps of the site. It returns an error if nodes, volumes or
// snapshots of the site are left. It leaves what other sites use too, and returns a list of that.
func (h stateHost) Forget(ctx context.Context) (left []string, err error) {
	nodes, err := nodeHost{h.SiteState}.List(ctx)
	if err != nil {
		return nil, err
	}
	if len(nodes) > 0 {
		return nil, problem.New(problem.Surprise, "node %s of the site is still on this host", nodes[0].Name).
			Try("orrery host drain moves the nodes of a host to others")
	}
	volumes, err := volume.List(h.Dirs, h.Key) // a directory without data of any node does not count
	if err != nil {
		return nil, err
	}
	var data []string
	for _, v := range volumes {
		data = append(data, v.Name)
	}
	snapshots, err := namesIn(h.Dirs.Snapshots(h.Key))
	if err != nil {
		return nil, err
	}
	for _, kept := range []struct {
		what, dir, cure string
		names           []string
	}{
		{"volumes", h.Dirs.Volumes(h.Key), "orrery down --volumes", slices.Compact(data)},
		{"snapshots", h.Dirs.Snapshots(h.Key), "orrery snapshot rm", snapshots},
	} {
		if len(kept.names) > 0 {
			return nil, problem.New(problem.Surprise, "%s of the site are still on this host: %s", kept.what,
				humanize.List(kept.names, 12)).At(kept.dir).Try("save what is needed of them; %s deletes them", kept.cure)
		}
	}
	if err := h.forgetPlans(ctx); err != nil {
		return nil, err
	}
	for _, dir := range []string{filepath.Join(h.Dirs.Run, "sites", h.Key), h.Dirs.Site(h.Key)} {
		if err := tree.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	store := image.Open(h.Dirs.State)
	if layers, err := store.Layers(); err == nil && len(layers) > 0 {
		left = append(left, fmt.Sprintf("%s in %s, which the next site may use", humanize.Plural(len(layers), "layer"),
			store.Dir))
	}
	helper := filepath.Join(h.Dirs.State, "helper")
	others, err := namesIn(filepath.Join(h.Dirs.State, "sites"))
	if err != nil {
		return left, err
	}
	if len(others) > 0 {
		return append(left, fmt.Sprintf("this program in %s, for the sites %s", helper, humanize.List(others, 8))), nil
	}
	return left, tree.RemoveAll(helper)
}

// namesIn returns the names in a directory, which need not exist. It skips names that begin with a
// dot, because those are incomplete.
func namesIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
