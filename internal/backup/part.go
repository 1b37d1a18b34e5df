package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"orrery/internal/backup/vault"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// The restore of a site has a part on each of its hosts. First, all hosts stage their parts, and
// none changes the site. Then each host records that it continues. After a kill, one such record
// tells the next run that all hosts have staged their parts, and that run completes all parts
// without the backup. Without such a record, the site is unchanged unless all parts are staged.

// Contents is the content of a backup. It comes from a vault on this machine, or from a machine
// that has the vault.
type Contents interface {
	// Each parses the entries of a tree, one at a time. It stops at the first error of visit and
	// returns it.
	Each(t *vault.Tree, visit func(*vault.Entry) error) error
	// Get returns the content of a piece, which is verified by its digest.
	Get(d vault.Digest) ([]byte, error)
	// Where returns the location of the backup. Damaged returns the problem for damage in it.
	Where() string
	Damaged(what string, err error) error
}

// A Part is a host's part of a restore: the staged files and the progress.
type Part struct {
	Layout
	ID       string
	Title    string          // name of the backup for the user
	Manifest *vault.Manifest // or nil if the part is not completely staged
	Store    *image.Store
	Replace  bool     // replace existing files
	Without  []string // hosts that were left out and have no part of the restore

	plan progress
}

// IsStaged reports whether this part is completely staged and has the same trees and hosts as the
// restore.
func (r *Part) IsStaged(of *Restore) bool {
	same := func(a, b vault.Tree) bool { return a.Name == b.Name && slices.Equal(a.List, b.List) }
	return r.plan.Staged && r.ID == of.ID && r.plan.Opened == (of.Secrets != nil) &&
		slices.Equal(r.Without, of.Without) && r.Manifest != nil &&
		bytes.Equal(r.Manifest.Releases, of.Manifest.Releases) && slices.EqualFunc(r.Manifest.Trees, of.Manifest.Trees, same)
}

// AllStaged reports whether all hosts have staged their parts.
func (r *Part) AllStaged() bool { return r.plan.Committed }

// State returns how far a part has come.
func (r *Part) State() *observe.RestoreProgress {
	s := &observe.RestoreProgress{ID: r.ID, From: r.Title, Without: r.Without, Staged: r.plan.Staged,
		Going: r.plan.Committed, Clears: r.MustClear(), Placed: r.plan.Committed && r.Placed(), Opened: r.plan.Opened}
	if r.Manifest == nil {
		return s
	}
	for i := range r.Manifest.Nodes {
		if n := &r.Manifest.Nodes[i]; tree.Exists(r.private(n.ID)) {
			s.Nodes = append(s.Nodes, n.Name)
		}
	}
	return s
}

// IsComplete reports whether the part is complete.
func (r *Part) IsComplete() bool { return r.plan.Committed && r.Placed() && len(r.State().Nodes) == 0 }

// Finish moves the snapshots of a part to their place, after its nodes were created, and removes what
// is left of the part.
func (r *Part) Finish(engines map[string]engine.Engine) error {
	if err := r.PlaceSnapshots(engines); err != nil {
		return err
	}
	return r.Clear()
}

// The steps of a part, in their order.
const (
	StepStart  = "go"      // all hosts have staged their parts
	StepClear  = "cleared" // the former site was taken down
	StepPlace  = "place"   // the staged files are moved to their place
	StepFinish = "finish"  // the nodes have their data; the rest of the part is removed
	StepDrop   = "drop"    // the part is dropped before StepStart
	StepAbort  = "give up" // the part is dropped at any time
)

// Advance does the next step. For StepFinish, it returns messages about what differs from the backup.
func (r *Part) Advance(ctx context.Context, to string, engines map[string]engine.Engine) (told []string, err error) {
	switch {
	case to == StepDrop && r.plan.Committed:
		return nil, problem.New(problem.Surprise, "the restore has already started")
	case to == StepDrop, to == StepAbort:
		return nil, r.Clear()
	case !r.plan.Staged:
		return nil, problem.New(problem.Surprise, "the part is not staged")
	case to == StepStart:
		r.plan.Committed = true
		return nil, r.note()
	case !r.plan.Committed:
		return nil, problem.New(problem.Surprise, "not all hosts have staged their parts")
	case to == StepClear:
		return nil, r.Cleared()
	case r.MustClear():
		return nil, problem.New(problem.Surprise, "the former site has not been destroyed")
	case to == StepPlace:
		return nil, r.Place(ctx, engines)
	case to == StepFinish && r.Placed():
		if told, err = r.differences(); err != nil {
			return nil, err
		}
		return told, r.Finish(engines)
	}
	return nil, errors.New("unknown step: " + to)
}

// differences returns messages about what differs from the backup.
func (r *Part) differences() (told []string, err error) {
	found, err := nodedir.All(r.Dirs, r.Key)
	if err != nil {
		return nil, err
	}
	var nodes []nodedir.Record
	for _, f := range found {
		nodes = append(nodes, *f.Record)
	}
	tell := func(format string, args ...any) { told = append(told, sanitize.Line(fmt.Sprintf(format, args...))) }
	content, recipe := r.rebuilt(nodes)
	if len(content) > 0 {
		tell("rebuilt, with other content than in the backup: layer %s (packages may be newer; --with-layers keeps them)",
			humanize.List(content, 4))
	}
	if len(recipe) > 0 && len(nodes) > 0 {
		tell("no longer used by any node, because the site file builds other layers: layer %s", humanize.List(recipe, 4))
	}
	for _, name := range r.State().Nodes { // the nodes whose private layers were not used
		tell("not restored: node %s, which has another release or is no longer declared", name)
	}
	return told, nil
}
