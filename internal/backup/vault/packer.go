package vault

import (
	"sync"
	"sync/atomic"
)

// A Packer stores the pieces that a vault lacks. It puts several pieces in a block.
type Packer struct {
	vault Vault
	known *index
	Only  map[Digest]bool // the pieces to store, or nil for all
	Known map[Digest]bool // the pieces that the other end of a RemoteVault already has

	mu      sync.Mutex
	pieces  []piece
	content []byte
	coming  map[Digest]bool // added in this run, and perhaps not yet in the vault

	jobs   chan job
	free   chan []byte // buffers for new blocks
	done   sync.WaitGroup
	failed atomic.Pointer[error]
	wrote  atomic.Int64 // bytes of blocks
}

type job struct {
	pieces  []piece
	content []byte
}

// NewPacker starts packing pieces into blocks of a vault.
func NewPacker(v Vault) *Packer {
	p := &Packer{vault: v, known: v.pieceIndex(), coming: map[Digest]bool{}, jobs: make(chan job, workers),
		free: make(chan []byte, 2*workers+1)}
	for range cap(p.free) {
		p.free <- make([]byte, 0, blockSize+PieceSize)
	}
	for range workers {
		p.done.Go(p.work)
	}
	return p
}

func (p *Packer) work() {
	var block []byte
	for j := range p.jobs {
		block = encodeBlock(block, j.pieces, j.content)
		p.free <- j.content[:0]
		name := digestOf(block)
		if err := p.vault.put(name, block); err != nil {
			p.failed.CompareAndSwap(nil, &err)
			continue
		}
		p.wrote.Add(int64(len(block)))
		if err := p.known.add(name, j.pieces); err != nil {
			p.failed.CompareAndSwap(nil, &err)
		}
	}
}

// Add adds a piece. The packer copies the content.
func (p *Packer) Add(content []byte) (Digest, error) {
	d := digestOf(content)
	if p.Only != nil && !p.Only[d] || p.Known[d] || p.Has(d) {
		return d, nil
	}
	if err := p.failed.Load(); err != nil {
		return d, *err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.coming[d] {
		return d, nil
	}
	p.coming[d] = true
	if p.content == nil {
		p.content = <-p.free
	}
	p.pieces = append(p.pieces, piece{d, uint32(len(content))})
	p.content = append(p.content, content...)
	if len(p.content) >= blockSize || len(p.pieces) >= maxPieces {
		p.send()
	}
	return d, nil
}

// Has reports whether a piece is in the vault, in a block that may be reused.
func (p *Packer) Has(d Digest) bool {
	block, ok := p.Block(d)
	return ok && p.vault.IsIntact(block)
}

// Block returns the block of the vault that contains a piece.
func (p *Packer) Block(d Digest) (Digest, bool) {
	at, ok := p.known.find(d)
	return at.block, ok
}

// Written returns how many bytes of blocks were written.
func (p *Packer) Written() int64 { return p.wrote.Load() }

func (p *Packer) send() {
	if len(p.pieces) > 0 {
		p.jobs <- job{p.pieces, p.content}
		p.pieces, p.content = nil, nil
	}
}

// FinishBlock makes the next piece start a new block.
func (p *Packer) FinishBlock() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send()
}

// AddAll adds content of any size, cut into pieces.
func (p *Packer) AddAll(content []byte) ([]Digest, error) {
	var all []Digest
	for len(content) > 0 {
		n := min(len(content), PieceSize)
		d, err := p.Add(content[:n])
		if err != nil {
			return nil, err
		}
		all, content = append(all, d), content[n:]
	}
	return all, nil
}

// Close stores the remaining pieces and waits until all are in the vault.
func (p *Packer) Close() error {
	p.FinishBlock()
	close(p.jobs)
	p.done.Wait()
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}
