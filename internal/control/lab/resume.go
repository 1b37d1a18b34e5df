package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/control"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/facts"
	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
)

// resume opens the bundle of a run that was not brought to its end.
func resume(ctx context.Context, told Watcher, dir string, h bundle.Head) (*bundle.Writer, *bundle.Contents, error) {
	w, before, err := bundle.Open(ctx, dir, h.Who)
	if err == nil {
		told.Resumed(dir, max(0, before.Head.Rounds-1))
		before.Head.State, before.Head.Width = bundle.Running, h.Width
	}
	return w, before, err
}

// unfinished returns the last bundle of the same experiment that is not done, or "". Rounds under
// other conditions than those of now are not mixed with new ones: such a bundle is left alone,
// which is told, or an error if it is where this one is to be.
func unfinished(ctx context.Context, c *control.Session, told Watcher, h bundle.Head, to string) (string, error) {
	now, err := facts.Collect(ctx, facts.Options{})
	if err != nil {
		return "", err
	}
	if to != "" {
		b, err := bundle.Read(to)
		if err != nil || !resumable(b.Head, h) {
			return "", nil
		}
		if other := otherwise(to, b.Head, h, now); len(other) > 0 {
			return "", problem.New(problem.Surprise, "the run there began under other conditions: %s",
				strings.Join(other, "; ")).At(to).
				Try("name another directory, or resume it under those")
		}
		return to, nil
	}
	heads, _ := bundle.List(Bundles(c))
	for _, b := range slices.Backward(heads) {
		dir := filepath.Join(Bundles(c), b.ID)
		if !resumable(b, h) {
			continue
		}
		other := otherwise(dir, b, h, now)
		if len(other) == 0 {
			return dir, nil
		}
		told.Apart(dir, strings.Join(other, "; "))
	}
	return "", nil
}

// resumable reports whether a run that is to be may go on with a former one. What another host has
// sent is its own, and goes on there. Another part of the experiment is another table.
func resumable(former, h bundle.Head) bool {
	return former.Digest == h.Digest && slices.Equal(former.Part, h.Part) && former.State != bundle.Done &&
		former.From == ""
}

// maxFactsBytes bounds what is read of the facts of a bundle.
const maxFactsBytes = 16 << 20

// otherwise says in what the conditions of a former run differ from those of now, as far as it had
// come to take them down.
func otherwise(dir string, former, h bundle.Head, now facts.Facts) (all []string) {
	if former.Orrery != h.Orrery {
		all = append(all, fmt.Sprintf("Orrery: %s then, %s now", former.Orrery, h.Orrery))
	}
	then := facts.Facts{}
	text, err := bundle.ReadFile(dir, bundle.FactsFile, maxFactsBytes)
	if err != nil || jsonlimit.Unmarshal(text, &then) != nil {
		then = facts.Facts{}
	}
	then.Host = former.Host
	now.Host = h.Host
	return append(all, now.Unlike(then)...)
}
