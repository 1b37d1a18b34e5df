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

// resume opens the bundle of an unfinished run.
func resume(ctx context.Context, told Watcher, dir string, h bundle.Manifest) (*bundle.Writer, *bundle.Contents,
	error) {
	w, before, err := bundle.Open(ctx, dir, h.Who)
	if err == nil {
		told.Resumed(dir, max(0, before.Manifest.Rounds-1))
		before.Manifest.State, before.Manifest.Width = bundle.Running, h.Width
	}
	return w, before, err
}

// findUnfinished returns the last bundle of the same experiment that is not done, or "". Rounds from
// different conditions are not mixed. If conditions have changed, unfinished reports that and skips
// the bundle. It returns an error if the new bundle would be in the same directory.
func findUnfinished(ctx context.Context, c *control.Session, told Watcher, h bundle.Manifest, to string) (string,
	error) {
	now, err := facts.Collect(ctx, facts.Options{})
	if err != nil {
		return "", err
	}
	if to != "" {
		b, err := bundle.Read(to)
		if err != nil || !resumable(b.Manifest, h) {
			return "", nil
		}
		if other := changedConditions(to, b.Manifest, h, now); len(other) > 0 {
			return "", problem.New(problem.Surprise, "the run in this directory began under other conditions: %s",
				strings.Join(other, "; ")).At(to).
				Try("name another directory, or resume the run under those conditions")
		}
		return to, nil
	}
	heads, _ := bundle.List(Bundles(c))
	for _, b := range slices.Backward(heads) {
		dir := filepath.Join(Bundles(c), b.ID)
		if !resumable(b, h) {
			continue
		}
		other := changedConditions(dir, b, h, now)
		if len(other) == 0 {
			return dir, nil
		}
		told.NotResumed(dir, strings.Join(other, "; "))
	}
	return "", nil
}

// resumable reports whether a new run may resume a former one. A run on another host is resumed on
// that host. A different part of the experiment has a different table.
func resumable(former, h bundle.Manifest) bool {
	return former.Digest == h.Digest && slices.Equal(former.Part, h.Part) && former.State != bundle.Done &&
		former.From == ""
}

// maxFactsBytes limits how much of the facts of a bundle is read.
const maxFactsBytes = 16 << 20

// changedConditions returns how the conditions of a former run differ from the current ones, as far as they
// were recorded.
func changedConditions(dir string, former, h bundle.Manifest, now facts.Facts) (all []string) {
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
	return append(all, now.Differences(then)...)
}
