package vault

import (
	"container/list"
	"context"
	"io"
	"sync"

	"orrery/internal/problem"
)

// workers is how many blocks are packed or verified concurrently.
const workers = 2

// A Vault stores backups. It is a Repository or an Archive.
type Vault interface {
	// Where returns the path of the vault.
	Where() string
	// Backups returns the names of the backups in it, the oldest first.
	Backups() ([]string, error)
	// Manifest returns the manifest of a backup.
	Manifest(id string) (*Manifest, error)
	// Verify reads everything that belongs to a backup and verifies it by its digests. The problem
	// names the damaged file.
	Verify(ctx context.Context, id string, read func(bytes int64)) error
	Close() error

	pieceIndex() *index
	IsIntact(block Digest) bool // whether a block may be reused
	block(name Digest) ([]byte, error)
	put(name Digest, block []byte) error
	Commit(m *Manifest) (id string, err error)
}

// Pieces reads pieces from a vault. It caches the blocks that were opened last, because consecutive
// pieces are in the same block.
type Pieces struct {
	vault Vault
	mu    sync.Mutex
	order *list.List // of *opened, the latest first
	open  map[Digest]*list.Element
}

type opened struct {
	name    Digest
	content []byte
}

// cachedBlocks is how many opened blocks are cached.
const cachedBlocks = 8

// NewPieces returns a reader of the pieces in a vault.
func NewPieces(v Vault) *Pieces {
	return &Pieces{vault: v, order: list.New(), open: map[Digest]*list.Element{}}
}

// Get returns the content of a piece, which is verified by its digest.
func (p *Pieces) Get(d Digest) ([]byte, error) {
	at, ok := p.vault.pieceIndex().find(d)
	if !ok {
		return nil, problem.New(problem.Failed, "piece %s is missing from the backup", d).At(p.vault.Where())
	}
	content, err := p.content(at.block)
	if err != nil {
		return nil, err
	}
	if int64(at.at)+int64(at.size) > int64(len(content)) {
		return nil, Damaged(p.vault, blockName(at.block), errBlock)
	}
	found := content[at.at : at.at+at.size]
	if digestOf(found) != d {
		return nil, Damaged(p.vault, blockName(at.block), errDigest)
	}
	return found, nil
}

func (p *Pieces) content(block Digest) ([]byte, error) {
	p.mu.Lock()
	if e, ok := p.open[block]; ok {
		p.order.MoveToFront(e)
		p.mu.Unlock()
		return e.Value.(*opened).content, nil
	}
	p.mu.Unlock()
	stored, err := p.vault.block(block)
	if err != nil {
		return nil, err
	}
	content, err := contentOf(stored)
	if err != nil {
		return nil, Damaged(p.vault, blockName(block), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[block] = p.order.PushFront(&opened{block, content})
	for p.order.Len() > cachedBlocks {
		last := p.order.Remove(p.order.Back()).(*opened)
		delete(p.open, last.name)
	}
	return content, nil
}

// Stream returns a reader of consecutive pieces.
func (p *Pieces) Stream(all []Digest) io.Reader { return &stream{from: p, left: all} }

type stream struct {
	from *Pieces
	left []Digest
	now  []byte
}

func (s *stream) Read(b []byte) (int, error) {
	for len(s.now) == 0 {
		if len(s.left) == 0 {
			return 0, io.EOF
		}
		var err error
		if s.now, err = s.from.Get(s.left[0]); err != nil {
			return 0, err
		}
		s.left = s.left[1:]
	}
	n := copy(b, s.now)
	s.now = s.now[n:]
	return n, nil
}

// Each parses the entries of a tree, one at a time. It stops at the first error of visit and
// returns it.
func (p *Pieces) Each(t *Tree, visit func(*Entry) error) error {
	var stop error
	err := eachEntry(p.Stream(t.List), func(e *Entry) error {
		stop = visit(e)
		return stop
	})
	if err != nil && stop == nil {
		return Damaged(p.vault, "the list of "+t.Name, err)
	}
	return stop
}

// Block returns the block that contains a piece.
func (p *Pieces) Block(d Digest) (Digest, bool) {
	at, ok := p.vault.pieceIndex().find(d)
	return at.block, ok
}

// Where returns the path of the vault.
func (p *Pieces) Where() string { return p.vault.Where() }

// Damaged returns the problem for damage in the vault.
func (p *Pieces) Damaged(what string, err error) error { return Damaged(p.vault, what, err) }

// VerifyAgain makes the blocks of these pieces be verified before they are reused, because the content of
// the pieces is invalid.
func (p *Pieces) VerifyAgain(all []Digest) {
	r, ok := p.vault.(*Repository)
	for _, d := range all {
		if block, found := p.Block(d); ok && found {
			r.verifyAgain(block)
		}
	}
}
