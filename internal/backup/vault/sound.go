package vault

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// Blocks of former backups may have rotted since they were written, and a new backup that reuses
// them would be damaged, too. So a block is reused only if its file has not changed since it was
// last read completely. The size, the inode, and the change time, which no program can set, must be
// the same. All other blocks are read and verified by their digests. In addition, each backup reads
// some of the blocks that were read longest ago, because a disk loses data without reporting it. A
// damaged block is not used any more: its content is read from the source and written again.

// A blockFile is the state of a block's file.
type blockFile struct {
	size    int64 // or -1 if it is not a regular file
	inode   uint64
	changed int64 // nanoseconds
	// Unix time at which the file in this state was last verified, or 0 if never
	read   int64
	now    bool // verified by this run
	reused bool // reused by this run
	fresh  bool // written by this run
}

func fileOf(st *unix.Stat_t) *blockFile {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return &blockFile{size: -1}
	}
	return &blockFile{size: st.Size, inode: st.Ino, changed: st.Ctim.Nano()}
}

func (f *blockFile) same(g *blockFile) bool {
	return f.size == g.size && f.inode == g.inode && f.changed == g.changed
}

// A CorruptBlock is a block that does not match its name.
type CorruptBlock struct {
	Block  Digest
	Why    error
	pieces []piece // the pieces that were in it, as far as they are known
}

// Name returns the path of the block's file.
func (b *CorruptBlock) Name() string { return blockName(b.Block) }

// Checked says which of the blocks that a backup reuses were verified.
type Checked struct {
	Blocks   int   // number of reused blocks
	Bytes    int64 // size of the reused blocks
	Read     int   // number of reused blocks that were read and verified
	Reread   int64 // size of these
	Corrupt  []CorruptBlock
	Replaced bool // all pieces of corrupt blocks are in other blocks now

	Manifests []string // ids of backups whose manifests are damaged
}

// readVerified reads and verifies a block, and returns its list of pieces.
func (s *blockStore) readVerified(block Digest) ([]piece, error) {
	s.mu.Lock()
	file := s.files[block]
	s.mu.Unlock()
	switch {
	case file == nil:
		return nil, ErrMissing
	case file.size < 0:
		return nil, tree.ErrNotRegular
	}
	stored, err := s.block(block)
	if err != nil {
		return nil, err
	}
	if digestOf(stored) != block {
		return nil, errDigest
	}
	pieces, err := piecesOf(stored)
	if told := s.index.of(block); err == nil && told != nil && !slices.Equal(told, pieces) {
		err = errIndex
	}
	return pieces, err
}

// errIndex is the error for an index that does not match the block.
var errIndex = errors.New("its pieces differ from the index")

// IsIntact reports whether a block may be reused.
func (s *blockStore) IsIntact(block Digest) bool {
	s.mu.Lock()
	file := s.files[block]
	known := file != nil && file.read > 0
	if known {
		file.reused = true
	}
	s.mu.Unlock()
	return known || file != nil && s.verify(block)
}

// verify verifies a block before it is reused, and condemns it if it is damaged.
func (s *blockStore) verify(block Digest) bool {
	if _, err := s.readVerified(block); err != nil {
		s.markCorrupt(block, err)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.files[block]
	if file == nil {
		return false
	}
	file.read, file.now, file.reused = time.Now().Unix(), true, true
	s.checked.Read++
	s.checked.Reread += file.size
	return true
}

// markCorrupt marks a block as damaged, so that it is not used any more.
func (s *blockStore) markCorrupt(block Digest, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[block] == nil {
		return // another goroutine has done so
	}
	s.checked.Corrupt = append(s.checked.Corrupt, CorruptBlock{block, problem.PathErrorCause(why), s.index.of(block)})
	delete(s.files, block)
	s.index.drop(block)
}

// verifyAgain makes a block be verified before it is reused.
func (s *blockStore) verifyAgain(block Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if file := s.files[block]; file != nil {
		file.read = 0
	}
}

// The part of the reused blocks that each backup verifies.
const (
	sampleDivisor  = 128 // one byte of so many
	minRereadBytes = 4 << 20
	maxRereadBytes = 256 << 20
)

// Sample verifies some of the blocks that will be reused. It takes those that were read longest
// ago, so that over time all are verified.
func (s *blockStore) Sample(ctx context.Context, used []Digest) error {
	type one struct {
		block Digest
		blockFile
	}
	var all []one
	total := int64(0)
	s.mu.Lock()
	for _, block := range used {
		if file := s.files[block]; file != nil && file.read > 0 && !file.now {
			all = append(all, one{block, *file})
			total += file.size
		}
	}
	s.mu.Unlock()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b one) int { return cmp.Compare(a.read, b.read) })
	var some []Digest
	for left := min(max(total/sampleDivisor, minRereadBytes), maxRereadBytes); left > 0 && len(some) < len(all); {
		left -= all[len(some)].size
		some = append(some, all[len(some)].block)
	}
	return EachBlock(ctx, some, func(block Digest) error {
		s.verify(block)
		return nil
	})
}

// HasCorrupt reports whether a block was condemned.
func (s *blockStore) HasCorrupt() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.checked.Corrupt) > 0
}

// Unreadable records that the manifest of a backup could not be read.
func (s *blockStore) Unreadable(id string) { s.checked.Manifests = append(s.checked.Manifests, id) }

// Checked returns what was verified.
func (s *blockStore) Checked() Checked {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.checked
	c.Replaced = true
	for _, file := range s.files {
		if file.reused && !file.fresh {
			c.Blocks++
			c.Bytes += file.size
		}
	}
	for _, corrupt := range c.Corrupt {
		c.Replaced = c.Replaced && s.replaced(&corrupt)
	}
	slices.SortFunc(c.Corrupt, func(a, b CorruptBlock) int { return bytes.Compare(a.Block[:], b.Block[:]) })
	return c
}

// replaced reports whether all pieces of a block are in other blocks.
func (s *blockStore) replaced(b *CorruptBlock) bool {
	return b.pieces != nil && !slices.ContainsFunc(b.pieces, func(p piece) bool {
		_, ok := s.index.find(p.digest)
		return !ok
	})
}

// RemoveCorrupt removes damaged blocks. If a damaged block has pieces that are in no other block, it is
// moved to rotten/, where the user can look into it.
func (s *blockStore) RemoveCorrupt() error {
	for i := range s.checked.Corrupt {
		corrupt := &s.checked.Corrupt[i]
		if s.files[corrupt.Block] != nil {
			continue // the block was written again
		}
		st, err := s.root.Lstat(corrupt.Name())
		switch {
		case err != nil:
			continue // its file does not exist
		case fileOf(st).size > 0 && !s.replaced(corrupt):
			if err = s.root.Mkdir("rotten", 0o700); err == nil {
				err = s.root.Rename(corrupt.Name(), "rotten/"+corrupt.Block.String()+".zst")
			}
		default:
			err = s.root.RemoveAll(corrupt.Name())
		}
		if err != nil {
			return writeProblem(s.dir, err)
		}
	}
	return nil
}

// Recover passes the intact pieces of a damaged block to keep.
func (s *blockStore) Recover(b *CorruptBlock, keep func(content []byte) error) error {
	stored, err := s.block(b.Block)
	if err != nil {
		return nil // nothing of it can be read
	}
	pieces := b.pieces
	if pieces == nil {
		if pieces, err = piecesOf(stored); err != nil {
			return nil
		}
	}
	head := 8 + len(pieces)*pieceLine
	if len(stored) < head {
		return nil
	}
	content, _ := decompressor.DecodeAll(stored[head:], nil) // as much as can be decompressed
	for _, p := range pieces {
		if int(p.size) > len(content) {
			return nil
		}
		if digestOf(content[:p.size]) == p.digest {
			if err := keep(content[:p.size]); err != nil {
				return err
			}
		}
		content = content[p.size:]
	}
	return nil
}

// readName is the file with the states of the blocks' files when they were last verified.
const readName = "index/read"

const blockLine = len(Digest{}) + 4*8

// saveReadStates writes that file.
func (s *blockStore) saveReadStates() error {
	s.mu.Lock()
	text := make([]byte, 0, len(s.files)*blockLine+sha256.Size)
	for block, file := range s.files {
		if file.read == 0 {
			continue
		}
		text = append(text, block[:]...)
		for _, n := range []uint64{uint64(file.size), file.inode, uint64(file.changed), uint64(file.read)} {
			text = binary.LittleEndian.AppendUint64(text, n)
		}
	}
	s.mu.Unlock()
	sum := sha256.Sum256(text)
	// Do not wait for the disk: a damaged file is recognised by its digest.
	return writeProblem(s.dir, s.file(readName, append(text, sum[:]...), false))
}

// loadReadStates reads what remember wrote. Without that file, each block is verified before it is reused.
func (s *blockStore) loadReadStates() {
	text, err := s.root.ReadFile(readName, int64(len(s.files)+MaxNames)*int64(blockLine)+sha256.Size)
	if err != nil || len(text) < sha256.Size {
		return
	}
	text, sum := text[:len(text)-sha256.Size], text[len(text)-sha256.Size:]
	if got := sha256.Sum256(text); !bytes.Equal(got[:], sum) || len(text)%blockLine != 0 {
		return
	}
	now := time.Now().Unix()
	for ; len(text) > 0; text = text[blockLine:] {
		number := func(n int) uint64 { return binary.LittleEndian.Uint64(text[len(Digest{})+8*n:]) }
		old := blockFile{size: int64(number(0)), inode: number(1), changed: int64(number(2)), read: int64(number(3))}
		if file := s.files[Digest(text)]; file != nil && file.same(&old) {
			file.read = min(old.read, now) // the clock may have been ahead
		}
	}
}

// VerifyAll verifies all blocks, and condemns those that are damaged. It returns the number of
// blocks and their size.
func (s *blockStore) VerifyAll(ctx context.Context, saw func(bytes int64)) (blocks int, bytes int64, err error) {
	sizes := map[Digest]int64{}
	for block, file := range s.files {
		sizes[block] = max(file.size, 0)
		bytes += sizes[block]
	}
	blocks = len(sizes) + len(s.checked.Corrupt) // some were condemned when the repository was opened
	err = EachBlock(ctx, slices.Collect(maps.Keys(sizes)), func(block Digest) error {
		s.verify(block)
		saw(sizes[block])
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return blocks, bytes, s.index.reindex()
}
