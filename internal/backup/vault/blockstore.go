package vault

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A blockStore is the blocks of a repository: which exist, what is in them, and which of them were
// checked (sound.go).
type blockStore struct {
	*directory
	index *index
	made  sync.Map // existing directories of blocks

	mu      sync.Mutex
	files   map[Digest]*blockFile
	checked Checked
}

// list finds the files of blocks.
func (s *blockStore) list() error {
	s.files = map[Digest]*blockFile{}
	blocks, err := s.root.Sub("blocks")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return Damaged(s.directory, "blocks", problem.PathErrorCause(err))
	}
	defer blocks.Close()
	err = blocks.Walk(context.Background(), tree.Bounds{Depth: 2, Names: MaxNames, All: tree.DefaultBounds.All},
		func(e *tree.Entry) error {
			part, name, inner := strings.Cut(e.Path, "/")
			if !inner {
				if e.Path != "." && len(part) != 2 {
					return tree.SkipDir
				}
				return nil
			}
			var d Digest
			if d.UnmarshalText([]byte(strings.TrimSuffix(name, ".zst"))) == nil && blockName(d) == "blocks/"+e.Path {
				s.files[d] = fileOf(&e.Stat)
			}
			return tree.SkipDir
		})
	if err != nil {
		return Damaged(s.directory, "blocks", problem.PathErrorCause(err))
	}
	return nil
}

func (s *blockStore) block(name Digest) ([]byte, error) {
	stored, err := s.root.ReadFile(blockName(name), maxBlockBytes)
	if err != nil {
		return nil, Damaged(s.directory, blockName(name), problem.PathErrorCause(err))
	}
	return stored, nil
}

// put writes a block. It does not wait for the disk: after a power cut, no index lists the block,
// so its digest is checked before it is used.
func (s *blockStore) put(name Digest, block []byte) error {
	fresh, path := "new/"+name.String(), blockName(name)
	err := s.file(fresh, block, false)
	if dir := filepath.Dir(path); err == nil && !s.known(dir) {
		err = s.clearing(dir, func() error { return s.root.Mkdir(dir, 0o700) })
	}
	if err == nil {
		err = s.clearing(path, func() error { return s.root.Rename(fresh, path) })
	}
	if err != nil {
		return writeProblem(s.dir, err)
	}
	st, err := s.root.Lstat(path)
	if err != nil {
		return writeProblem(s.dir, err)
	}
	file := fileOf(st)
	file.read, file.fresh = time.Now().Unix(), true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[name] = file
	return nil
}

// known reports whether a directory of blocks existed before.
func (s *blockStore) known(dir string) bool {
	if _, loaded := s.made.LoadOrStore(dir, true); !loaded {
		return false
	}
	_, err := s.root.Lstat(dir)
	return err == nil
}

func (s *blockStore) pieceIndex() *index { return s.index }

// Holds reports whether the store has a piece.
func (s *blockStore) Holds(d Digest) bool {
	_, ok := s.index.find(d)
	return ok
}
