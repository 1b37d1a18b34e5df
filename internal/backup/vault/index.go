package vault

import (
	"fmt"
	"sync"

	"orrery/internal/tree"
)

// An index says which piece is in which block.
type index struct {
	mu     sync.RWMutex
	pieces map[Digest]place
	blocks map[Digest][]piece
	count  int // number of pieces in all blocks
}

// errTooManyPieces is the error for a backup whose index would take too much memory.
var errTooManyPieces = fmt.Errorf("it has more than %d pieces", tree.DefaultBounds.All)

// A place is the position of a piece in a block.
type place struct {
	block Digest
	at    uint32
	size  uint32
}

func newIndex() *index { return &index{pieces: map[Digest]place{}, blocks: map[Digest][]piece{}} }

func (x *index) add(block Digest, pieces []piece) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.count += len(pieces) - len(x.blocks[block]); x.count > tree.DefaultBounds.All {
		return errTooManyPieces
	}
	x.blocks[block] = pieces
	at := uint32(0)
	for _, p := range pieces {
		if _, twice := x.pieces[p.digest]; !twice {
			x.pieces[p.digest] = place{block, at, p.size}
		}
		at += p.size
	}
	return nil
}

func (x *index) find(d Digest) (place, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p, ok := x.pieces[d]
	return p, ok
}

// drop removes a block. Pieces that are also in other blocks stay unknown until reindex is called.
func (x *index) drop(block Digest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.blocks[block] {
		if x.pieces[p.digest].block == block {
			delete(x.pieces, p.digest)
		}
	}
	x.count -= len(x.blocks[block])
	delete(x.blocks, block)
}

// of returns the known pieces of a block.
func (x *index) of(block Digest) []piece {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.blocks[block]
}

// reindex finds for each piece an existing block.
func (x *index) reindex() error {
	fresh := newIndex()
	for block, pieces := range x.blocks {
		if err := fresh.add(block, pieces); err != nil {
			return err
		}
	}
	x.pieces = fresh.pieces
	return nil
}
