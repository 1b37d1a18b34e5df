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

// A restore of a site has a part on each of its hosts. All lay down theirs first, and none has
// touched anything. Then each notes that it goes on: whoever comes after a kill knows from one such
// note that all have laid down theirs, and brings all to the end, without the backup. If there is
// none, the site is as it was, unless all parts are there.

// Contents is what is in a backup, wherever that is: pieces of a vault, or what somebody sends who has one.
type Contents interface {
	// Each reads the entries of a tree, one after another. What visit gives ends it.
	Each(t *vault.Tree, visit func(*vault.Entry) error) error
	// Get returns the content of a piece, which is compared with its digest.
	Get(d vault.Digest) ([]byte, error)
	// Where names it, and Damaged says what of it is damaged.
	Where() string
	Damaged(what string, err error) error
}

// A Part is what a host has of a restore: what is laid down, and how far it has come.
type Part struct {
	Layout
	ID       string
	Title    string          // how a user names the backup
	Manifest *vault.Manifest // nil: not all is laid down
	Store    *image.Store
	Replace  bool     // what is in the way goes
	Without  []string // hosts that have no part of it, because they were left out

	plan progress
}

// Lies reports whether all of a part is laid down that has these trees, while the same hosts have one.
func (r *Part) Lies(of *Restore) bool {
	same := func(a, b vault.Tree) bool { return a.Name == b.Name && slices.Equal(a.List, b.List) }
	return r.plan.Staged && r.ID == of.ID && r.plan.Opened == (of.Secrets != nil) &&
		slices.Equal(r.Without, of.Without) && r.Manifest != nil &&
		bytes.Equal(r.Manifest.Releases, of.Manifest.Releases) && slices.EqualFunc(r.Manifest.Trees, of.Manifest.Trees, same)
}

// Going reports whether all hosts have laid down their parts.
func (r *Part) Going() bool { return r.plan.Going }

// State tells how far a part has come.
func (r *Part) State() *observe.Restoring {
	s := &observe.Restoring{ID: r.ID, From: r.Title, Without: r.Without, Staged: r.plan.Staged, Going: r.plan.Going,
		Clears: r.ToClear(), Placed: r.plan.Going && r.Placed(), Opened: r.plan.Opened}
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

// Over reports whether a part has nothing left to be gone on with.
func (r *Part) Over() bool { return r.plan.Going && r.Placed() && len(r.State().Nodes) == 0 }

// End puts the snapshots of a part in their place, now that its nodes are there, and removes what
// is left of it.
func (r *Part) End(engines map[string]engine.Engine) error {
	if err := r.FitSnapshots(engines); err != nil {
		return err
	}
	return r.Clear()
}

// The steps of a part, in their order.
const (
	ToGo     = "go"      // all hosts have laid down theirs
	ToClear  = "cleared" // what was there has been taken down
	ToPlace  = "place"   // what is laid down comes to its place
	ToFinish = "finish"  // nodes have what they had; what is left of it goes
	ToDrop   = "drop"    // it does not come to that, or
	ToGiveUp = "give up" // not to its end
)

// Advance does a step. It tells what is other than it was.
func (r *Part) Advance(ctx context.Context, to string, engines map[string]engine.Engine) (told []string, err error) {
	switch {
	case to == ToDrop && r.plan.Going:
		return nil, problem.New(problem.Surprise, "it goes on already")
	case to == ToDrop, to == ToGiveUp:
		return nil, r.Clear()
	case !r.plan.Staged:
		return nil, problem.New(problem.Surprise, "it is not laid down")
	case to == ToGo:
		r.plan.Going = true
		return nil, r.note()
	case !r.plan.Going:
		return nil, problem.New(problem.Surprise, "not all hosts have laid down their parts")
	case to == ToClear:
		return nil, r.Cleared()
	case r.ToClear():
		return nil, problem.New(problem.Surprise, "what was there before has not been taken down")
	case to == ToPlace:
		return nil, r.Place(ctx, engines)
	case to == ToFinish && r.Placed():
		if told, err = r.otherwise(); err != nil {
			return nil, err
		}
		return told, r.End(engines)
	}
	return nil, errors.New("there is no such step: " + to)
}

// otherwise tells what is other than it was.
func (r *Part) otherwise() (told []string, err error) {
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
		tell("built anew, with another content than when it was backed up: layer %s (packages may be newer; --with-layers keeps them)",
			humanize.List(content, 4))
	}
	if len(recipe) > 0 && len(nodes) > 0 {
		tell("no node stands on it any more, because the site file makes other layers: layer %s", humanize.List(recipe, 4))
	}
	for _, name := range r.State().Nodes { // whose private layers have found no node
		tell("not restored: a node %s of another release, or that the site no longer declares", name)
	}
	return told, nil
}
