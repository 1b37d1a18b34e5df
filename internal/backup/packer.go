package backup

import (
	"sync"
	"sync/atomic"
)

// A packer takes pieces, and puts those that the vault has not yet into it, several in a block.
type packer struct {
	vault Vault
	known *index
	only  map[Digest]bool // which pieces are wanted; nil: all

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

func newPacker(v Vault) *packer {
	p := &packer{vault: v, known: v.has(), coming: map[Digest]bool{}, jobs: make(chan job, workers), free: make(chan []byte, 2*workers+1)}
	for range cap(p.free) {
		p.free <- make([]byte, 0, blockSize+pieceSize)
	}
	for range workers {
		p.done.Go(p.work)
	}
	return p
}

func (p *packer) work() {
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

// add takes a piece; the packer keeps a copy.
func (p *packer) add(content []byte) (Digest, error) {
	d := digestOf(content)
	if p.only != nil && !p.only[d] || p.has(d) {
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
	if len(p.content) >= blockSize || len(p.pieces) >= mostPieces {
		p.send()
	}
	return d, nil
}

// has reports whether a piece is in the vault, in a block that may be reused.
func (p *packer) has(d Digest) bool {
	block, has := p.block(d)
	return has && p.vault.sound(block)
}

// block gives the block of the vault that a piece is in.
func (p *packer) block(d Digest) (Digest, bool) {
	at, has := p.known.find(d)
	return at.block, has
}

// written tells how many bytes of blocks were written.
func (p *packer) written() int64 { return p.wrote.Load() }

func (p *packer) send() {
	if len(p.pieces) > 0 {
		p.jobs <- job{p.pieces, p.content}
		p.pieces, p.content = nil, nil
	}
}

// cut lets what comes next begin a block of its own.
func (p *packer) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send()
}

// addAll takes content of any size.
func (p *packer) addAll(content []byte) ([]Digest, error) {
	var all []Digest
	for len(content) > 0 {
		n := min(len(content), pieceSize)
		d, err := p.add(content[:n])
		if err != nil {
			return nil, err
		}
		all, content = append(all, d), content[n:]
	}
	return all, nil
}

// close puts what is left into the vault and waits for it.
func (p *packer) close() error {
	p.cut()
	close(p.jobs)
	p.done.Wait()
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}
