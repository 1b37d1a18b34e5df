package vault

import (
	"fmt"
	"sync"

	"orrery/internal/tree"
)

// An index says which piece is where.
type index struct {
	mu     sync.RWMutex
	pieces map[Digest]place
	blocks map[Digest][]piece
	count  int // of pieces in all blocks
}

// errMany: what a backup is made of would take all memory.
var errMany = fmt.Errorf("it has more than %d pieces", tree.Ample.All)

// A place is where a piece is: in a block, from an offset on.
type place struct {
	block Digest
	at    uint32
	size  uint32
}

func newIndex() *index { return &index{pieces: map[Digest]place{}, blocks: map[Digest][]piece{}} }

func (x *index) add(block Digest, pieces []piece) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.count += len(pieces) - len(x.blocks[block]); x.count > tree.Ample.All {
		return errMany
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

// drop forgets a block. What else is in the index of its pieces stays unknown until it is made anew.
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

// of returns the pieces that are in a block, as far as it is known.
func (x *index) of(block Digest) []piece {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.blocks[block]
}

// anew finds for each piece a block that there is.
func (x *index) anew() error {
	fresh := newIndex()
	for block, pieces := range x.blocks {
		if err := fresh.add(block, pieces); err != nil {
			return err
		}
	}
	x.pieces = fresh.pieces
	return nil
}
