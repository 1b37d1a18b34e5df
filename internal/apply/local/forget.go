package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/image"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// Forget removes all that this host keeps of the site, of which nothing may be there any more that somebody could miss. What other sites use as well stays, and is told.
func (w *Worker) Forget(ctx context.Context) (left []string, err error) {
	nodes, err := w.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	if len(nodes) > 0 {
		return nil, problem.New(problem.Surprise, "there is still node %s of the site on this host", nodes[0].Name).Try("orrery host drain moves the nodes of a host to others")
	}
	for what, dir := range map[string]string{"volumes": w.Dirs.Volumes(w.Key), "snapshots": w.Dirs.Snapshots(w.Key)} {
		names, err := namesIn(dir)
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			return nil, problem.New(problem.Surprise, "there are still %s of the site on this host: %s", what, phrase.List(names, 12)).At(dir).Try("save what is needed of them, and take them down first")
		}
	}
	if _, err := w.KeepMirrors(ctx, apply.Mirrors{}); err != nil {
		return nil, err
	}
	for _, dir := range []string{filepath.Join(w.Dirs.Run, "sites", w.Key), w.Dirs.Site(w.Key)} {
		if err := tree.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	store := image.Open(w.Dirs.State)
	if layers, err := store.Layers(); err == nil && len(layers) > 0 {
		left = append(left, fmt.Sprintf("%s in %s, which the next site may use", phrase.Count(len(layers), "layer"), store.Dir))
	}
	helper := filepath.Join(w.Dirs.State, "helper")
	others, err := namesIn(filepath.Join(w.Dirs.State, "sites"))
	if err != nil {
		return left, err
	}
	if len(others) > 0 {
		return append(left, fmt.Sprintf("this program in %s, for the sites %s", helper, phrase.List(others, 8))), nil
	}
	return left, tree.RemoveAll(helper)
}

// namesIn gives what is in a directory, which need not be there, but what is half made: its name begins with a dot.
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
