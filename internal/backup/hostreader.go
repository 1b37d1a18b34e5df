package backup

import (
	"context"
	"slices"
	"sync/atomic"

	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
)

// A HostReader is what a host reads for a backup. It reads everything while nodes run, and then what
// has changed while they are frozen.
type HostReader struct {
	Selection *Selection
	Into      Adder
	Only      map[string]bool // names of trees, or nil for all

	trees treeIndex
	read  atomic.Int64
}

// SetFormer sets the content of a tree in the last backup. The vault still has all of it.
func (r *HostReader) SetFormer(tree string, entries []vault.Entry) {
	if r.trees == nil {
		r.trees = treeIndex{}
	}
	r.trees[tree] = &treeState{entries: entries}
}

// ReadAll reads everything that has changed since the last backup.
func (r *HostReader) ReadAll(ctx context.Context) error {
	if r.trees == nil {
		r.trees = treeIndex{}
	}
	return r.pass(ctx, r.trees.pass)
}

// ReadChanged reads what has changed since then, until that is little.
func (r *HostReader) ReadChanged(ctx context.Context) error { return r.pass(ctx, r.trees.passUntilFew) }

func noted(int64) {} // the data is counted at the other end

func (r *HostReader) pass(ctx context.Context,
	read func(context.Context, []Source, Adder, func(int64), *atomic.Int64) error) error {
	sources, _, _, err := r.Selection.sources()
	if err != nil {
		return err
	}
	if r.Only != nil {
		sources = slices.DeleteFunc(sources, func(s Source) bool { return !r.Only[s.Tree.Name] })
	}
	return read(ctx, sources, r.Into, noted, &r.read)
}

// ReadFrozen reads the rest while the nodes are frozen. It returns the records of the nodes, and what is
// not in the backup.
func (r *HostReader) ReadFrozen(ctx context.Context) (nodes []nodedir.Record, left []string, err error) {
	sources, nodes, left, err := r.Selection.sources()
	if err != nil {
		return nil, nil, err
	}
	return nodes, left, r.trees.pass(ctx, r.trees.again(sources), r.Into, noted, &r.read)
}

// Each calls do for each tree that was read.
func (r *HostReader) Each(do func(t vault.Tree, entries []vault.Entry, left []string) error) error {
	for _, t := range r.trees {
		if err := do(t.source.Tree, t.entries, t.left); err != nil {
			return err
		}
	}
	return nil
}
