package vault

import (
	"context"
	"maps"
	"slices"
	"sync"

	"orrery/internal/tree"
)

// usedBlocks returns the blocks that a backup needs. If a piece is missing, it returns an error.
func usedBlocks(v Vault, m *Manifest) ([]Digest, error) {
	used := map[Digest]bool{}
	need := func(what string, all []Digest) error {
		for _, d := range all {
			at, ok := v.pieceIndex().find(d)
			if !ok {
				return Damaged(v, "a block that holds a part of "+what, ErrMissing)
			}
			used[at.block] = true
		}
		return nil
	}
	from := NewPieces(v)
	for i := range m.Trees {
		t := &m.Trees[i]
		if err := need("the list of "+t.Name, t.List); err != nil {
			return nil, err
		}
		err := from.Each(t, func(e *Entry) error {
			for _, x := range e.Data {
				if err := need(t.Name+"/"+tree.DisplayPath(string(e.Name)), x.Pieces); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if m.Secrets != nil {
		if err := need("the secrets", m.Secrets.Pieces); err != nil {
			return nil, err
		}
	}
	return slices.Collect(maps.Keys(used)), nil
}

// EachBlock calls do for blocks, several at a time, until one call fails.
func EachBlock(ctx context.Context, blocks []Digest, do func(Digest) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan Digest)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for block := range next {
				if err := do(block); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, block := range blocks {
		select {
		case next <- block:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}
