package vault

import (
	"container/list"
	"context"
	"io"
	"sync"

	"orrery/internal/problem"
)

// workers is how many blocks are packed or checked at once.
const workers = 2

// A Vault is where backups are: a Repository or an Archive.
type Vault interface {
	// Where names it.
	Where() string
	// Backups returns the names of the backups in it, the oldest first.
	Backups() ([]string, error)
	// Manifest reads what a backup has in it.
	Manifest(id string) (*Manifest, error)
	// Verify reads all that a backup consists of and compares it with its digests. The problem names
	// the file that is damaged.
	Verify(ctx context.Context, id string, read func(bytes int64)) error
	Close() error

	has() *index
	Sound(block Digest) bool // it may be reused
	block(name Digest) ([]byte, error)
	put(name Digest, block []byte) error
	Commit(m *Manifest) (id string, err error)
}

// Pieces reads pieces out of a vault. It remembers the blocks that were opened last, because
// neighbours lie in one block.
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

// remembered is how many opened blocks are kept.
const remembered = 8

// NewPieces opens the blocks of a vault for those who want pieces of them.
func NewPieces(v Vault) *Pieces {
	return &Pieces{vault: v, order: list.New(), open: map[Digest]*list.Element{}}
}

// Get returns the content of a piece, which is compared with its digest.
func (p *Pieces) Get(d Digest) ([]byte, error) {
	at, ok := p.vault.has().find(d)
	if !ok {
		return nil, problem.New(problem.Failed, "the backup lacks the piece %s", d).At(p.vault.Where())
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
	for p.order.Len() > remembered {
		last := p.order.Remove(p.order.Back()).(*opened)
		delete(p.open, last.name)
	}
	return content, nil
}

// Stream reads pieces one after the other.
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

// Each reads the entries of a tree, one after another. What visit gives ends it.
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

// Block returns the block in which a piece is.
func (p *Pieces) Block(d Digest) (Digest, bool) {
	at, ok := p.vault.has().find(d)
	return at.block, ok
}

// Where names the vault.
func (p *Pieces) Where() string { return p.vault.Where() }

// Damaged says what is damaged in the vault.
func (p *Pieces) Damaged(what string, err error) error { return Damaged(p.vault, what, err) }

// Doubt lets blocks be read before they are reused, since what is in these pieces cannot be understood.
func (p *Pieces) Doubt(all []Digest) {
	r, ok := p.vault.(*Repository)
	for _, d := range all {
		if block, found := p.Block(d); ok && found {
			r.doubt(block)
		}
	}
}
