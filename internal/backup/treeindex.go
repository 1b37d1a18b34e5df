package backup

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"orrery/internal/backup/vault"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// A treeIndex is the trees of a backup, by name, as they were when they were last read.
type treeIndex map[string]*treeState

type treeState struct {
	source  Source
	entries []vault.Entry
	bytes   int64
	left    []string // what is not in it, and why
}

// pass walks directories, several at a time, and reads what has changed since it was last read.
func (f treeIndex) pass(ctx context.Context, sources []Source, into Adder, saw func(int64), read *atomic.Int64) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(2, runtime.NumCPU()))
	results := make([]*treeState, len(sources))
	for i := range sources {
		former := map[treesync.Name]*vault.Entry{}
		if old := f[sources[i].Tree.Name]; old != nil {
			for j := range old.entries {
				former[old.entries[j].Name] = &old.entries[j]
			}
		}
		group.Go(func() error {
			w := &walk{ctx: ctx, source: &sources[i], former: former, pack: into, buffer: make([]byte, vault.PieceSize),
				saw: saw}
			entries, err := w.run()
			read.Add(w.read)
			if err != nil && !errors.Is(err, tree.ErrGone) {
				return fmt.Errorf("%s: %w", sources[i].Tree.Name, err)
			}
			if err == nil {
				results[i] = &treeState{sources[i], entries, w.bytes, w.left}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, r := range results {
		if r == nil {
			delete(f, sources[i].Tree.Name)
			continue
		}
		f[sources[i].Tree.Name] = r
	}
	return nil
}

// passUntilFew reads again the directories to which nodes write, until a pass reads only a few new bytes.
func (f treeIndex) passUntilFew(ctx context.Context, sources []Source, into Adder, saw func(int64),
	read *atomic.Int64) error {
	moving := slices.DeleteFunc(slices.Clone(sources), func(s Source) bool { return !s.Moving })
	for before, times := int64(0), 1; read.Load()-before > smallBytes && times < maxPasses; times++ {
		before = read.Load()
		if err := f.pass(ctx, moving, into, saw, read); err != nil {
			return err
		}
	}
	return nil
}

// again returns those of the current directories that must be read while the nodes are frozen. It
// removes the trees of directories that do not exist any more.
func (f treeIndex) again(sources []Source) (again []Source) {
	names := map[string]bool{}
	for _, s := range sources {
		names[s.Tree.Name] = true
		if old := f[s.Tree.Name]; old == nil || old.source.Dir == "" || s.Moving {
			again = append(again, s)
		}
	}
	for name := range f {
		if !names[name] {
			delete(f, name) // the directory was removed
		}
	}
	return again
}
