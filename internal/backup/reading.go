package backup

import (
	"context"
	"slices"
	"sync/atomic"

	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
)

// A Reading is what a host reads for a backup: once while nodes run, and what has changed while
// they stand still.
type Reading struct {
	Set  *Set
	Into Adder
	Only map[string]bool // trees; nil: all

	trees forest
	read  atomic.Int64
}

// Former says what was in a tree of the last backup, of which whoever has the vault still has all.
func (r *Reading) Former(tree string, entries []vault.Entry) {
	if r.trees == nil {
		r.trees = forest{}
	}
	r.trees[tree] = &taken{entries: entries}
}

// First reads all that is not as it was in the last backup.
func (r *Reading) First(ctx context.Context) error {
	if r.trees == nil {
		r.trees = forest{}
	}
	return r.pass(ctx, r.trees.pass)
}

// Again reads what has changed since, until that is little.
func (r *Reading) Again(ctx context.Context) error { return r.pass(ctx, r.trees.until) }

func noted(int64) {} // what comes is counted at the other end

func (r *Reading) pass(ctx context.Context,
	read func(context.Context, []Source, Adder, func(int64), *atomic.Int64) error) error {
	sources, _, _, err := r.Set.sources()
	if err != nil {
		return err
	}
	if r.Only != nil {
		sources = slices.DeleteFunc(sources, func(s Source) bool { return !r.Only[s.Tree.Name] })
	}
	return read(ctx, sources, r.Into, noted, &r.read)
}

// Last reads the rest, while the nodes stand still. It returns what is on record of them, and what is
// not in the backup.
func (r *Reading) Last(ctx context.Context) (nodes []nodedir.Record, left []string, err error) {
	sources, nodes, left, err := r.Set.sources()
	if err != nil {
		return nil, nil, err
	}
	return nodes, left, r.trees.pass(ctx, r.trees.again(sources), r.Into, noted, &r.read)
}

// Each passes what was read to do.
func (r *Reading) Each(do func(t vault.Tree, entries []vault.Entry, left []string) error) error {
	for _, t := range r.trees {
		if err := do(t.source.Tree, t.entries, t.left); err != nil {
			return err
		}
	}
	return nil
}
