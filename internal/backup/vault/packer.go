package vault

import (
	"sync"
	"sync/atomic"
)

// A Packer takes pieces, and puts those that the vault has not yet into it, several in a block.
type Packer struct {
	vault Vault
	known *index
	Only  map[Digest]bool // which pieces are wanted; nil: all
	Known map[Digest]bool // which are at the far end of an Outgoing vault already

	mu      sync.Mutex
	pieces  []piece
	content []byte
	coming  map[Digest]bool // taken in this run, perhaps not in the vault yet

	jobs   chan job
	free   chan []byte // room for blocks to be
	done   sync.WaitGroup
	failed atomic.Pointer[error]
	wrote  atomic.Int64 // bytes of blocks
}

type job struct {
	pieces  []piece
	content []byte
}

// NewPacker begins to pack pieces into blocks of a vault.
func NewPacker(v Vault) *Packer {
	p := &Packer{vault: v, known: v.has(), coming: map[Digest]bool{}, jobs: make(chan job, workers),
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
		block = seal(block, j.pieces, j.content)
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

// Add takes a piece; the packer keeps a copy.
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
	return ok && p.vault.Sound(block)
}

// Block returns the block of the vault that a piece is in.
func (p *Packer) Block(d Digest) (Digest, bool) {
	at, ok := p.known.find(d)
	return at.block, ok
}

// Written tells how many bytes of blocks were written.
func (p *Packer) Written() int64 { return p.wrote.Load() }

func (p *Packer) send() {
	if len(p.pieces) > 0 {
		p.jobs <- job{p.pieces, p.content}
		p.pieces, p.content = nil, nil
	}
}

// Cut lets what comes next begin a block of its own.
func (p *Packer) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send()
}

// AddAll takes content of any size.
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

// Close puts what is left into the vault and waits for it.
func (p *Packer) Close() error {
	p.Cut()
	close(p.jobs)
	p.done.Wait()
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}
