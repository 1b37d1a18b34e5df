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

// What a backup reuses of former ones may have rotted since, and then it would be no better than
// they. So no block is reused unless its file is as it was when all of it was last read: its size,
// its inode, and its time of change, which nobody can set. Any other is read and compared with its
// digest, and so are, at each backup, some of those that were read longest ago: a disk that forgets
// tells nobody. A block that is not whole is no longer used, so what was in it is read from its
// source and written once more.

// A blockFile is the file of a block.
type blockFile struct {
	size    int64 // -1: it is no regular file
	inode   uint64
	changed int64 // nanoseconds
	read    int64 // when all of it was last found right, in seconds; 0: not since the file is as it is
	now     bool  // it was this run that has read it
	reused  bool  // by this run
	fresh   bool  // written by this run
}

func fileOf(st *unix.Stat_t) *blockFile {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return &blockFile{size: -1}
	}
	return &blockFile{size: st.Size, inode: st.Ino, changed: st.Ctim.Nano()}
}

func (f *blockFile) is(g *blockFile) bool {
	return f.size == g.size && f.inode == g.inode && f.changed == g.changed
}

// A Rotten block is no longer what its name says.
type Rotten struct {
	Block  Digest
	Why    error
	pieces []piece // that were in it, as far as it is known
}

// Name is the path of its file.
func (b *Rotten) Name() string { return blockName(b.Block) }

// Checked says what of the blocks that a backup reuses was looked at.
type Checked struct {
	Blocks int   // that are reused
	Bytes  int64 // of these
	Read   int   // of these, blocks that were read and compared
	Reread int64 // bytes of these
	Rotten []Rotten
	Anew   bool // all that was in rotten blocks is in others now

	Manifests []string // IDs of backups whose manifests are damaged
}

// whole reads a block, wants it to be what its name says, and returns what is in it.
func (s *blockStore) whole(block Digest) ([]piece, error) {
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

// errIndex: what an index tells of a block is not so.
var errIndex = errors.New("there are other pieces in it than the index says")

// Sound reports whether a block may be reused.
func (s *blockStore) Sound(block Digest) bool {
	s.mu.Lock()
	file := s.files[block]
	known := file != nil && file.read > 0
	if known {
		file.reused = true
	}
	s.mu.Unlock()
	return known || file != nil && s.reread(block)
}

// reread reads a block that is to be reused, and condemns it if it is not whole.
func (s *blockStore) reread(block Digest) bool {
	if _, err := s.whole(block); err != nil {
		s.condemn(block, err)
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

// condemn lets a block be used no more.
func (s *blockStore) condemn(block Digest, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[block] == nil {
		return // somebody else has done so
	}
	s.checked.Rotten = append(s.checked.Rotten, Rotten{block, problem.Reason(why), s.index.of(block)})
	delete(s.files, block)
	s.index.drop(block)
}

// doubt lets a block be read before it is reused.
func (s *blockStore) doubt(block Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if file := s.files[block]; file != nil {
		file.read = 0
	}
}

// Of what is reused, a part is read at each backup: at least and at most so many bytes.
const (
	sampled        = 128 // one of so many bytes
	leastRead      = 4 << 20
	maxRereadBytes = 256 << 20
)

// Sample reads some of the blocks that are to be reused: those that were read longest ago, so that
// each comes round.
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
	for left := min(max(total/sampled, leastRead), maxRereadBytes); left > 0 && len(some) < len(all); {
		left -= all[len(some)].size
		some = append(some, all[len(some)].block)
	}
	return EachBlock(ctx, some, func(block Digest) error {
		s.reread(block)
		return nil
	})
}

// Rots reports whether something was condemned.
func (s *blockStore) Rots() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.checked.Rotten) > 0
}

// Unreadable notes that the manifest of a backup could not be read.
func (s *blockStore) Unreadable(id string) { s.checked.Manifests = append(s.checked.Manifests, id) }

// Checked tells what was looked at.
func (s *blockStore) Checked() Checked {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.checked
	c.Anew = true
	for _, file := range s.files {
		if file.reused && !file.fresh {
			c.Blocks++
			c.Bytes += file.size
		}
	}
	for _, rotten := range c.Rotten {
		c.Anew = c.Anew && s.replaced(&rotten)
	}
	slices.SortFunc(c.Rotten, func(a, b Rotten) int { return bytes.Compare(a.Block[:], b.Block[:]) })
	return c
}

// replaced reports whether all that was in a block is in others.
func (s *blockStore) replaced(b *Rotten) bool {
	return b.pieces != nil && !slices.ContainsFunc(b.pieces, func(p piece) bool {
		_, ok := s.index.find(p.digest)
		return !ok
	})
}

// Retire takes blocks that are not whole out of the way. One of which something is nowhere else is
// kept aside: whoever has nothing better may look into it.
func (s *blockStore) Retire() error {
	for i := range s.checked.Rotten {
		rotten := &s.checked.Rotten[i]
		if s.files[rotten.Block] != nil {
			continue // it was written once more
		}
		st, err := s.root.Lstat(rotten.Name())
		switch {
		case err != nil:
			continue // it is not there
		case fileOf(st).size > 0 && !s.replaced(rotten):
			if err = s.root.Mkdir("rotten", 0o700); err == nil {
				err = s.root.Rename(rotten.Name(), "rotten/"+rotten.Block.String()+".zst")
			}
		default:
			err = s.root.RemoveAll(rotten.Name())
		}
		if err != nil {
			return unwritten(s.dir, err)
		}
	}
	return nil
}

// Salvage passes the intact pieces of a rotten block to keep.
func (s *blockStore) Salvage(b *Rotten, keep func(content []byte) error) error {
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
	content, _ := unpacking.DecodeAll(stored[head:], nil) // as far as it can be unpacked
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

// readName is the file in which it is kept how the files of blocks were when they were last read.
const readName = "index/read"

const blockLine = len(Digest{}) + 4*8

// remember writes down how the files of blocks are that were read.
func (s *blockStore) remember() error {
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
	// It does not wait for the disk: what a power cut leaves of it is known by its digest.
	return unwritten(s.dir, s.file(readName, append(text, sum[:]...), false))
}

// recall reads what remember wrote. It is only a shortcut: without it, each block is read before it is reused.
func (s *blockStore) recall() {
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
		if file := s.files[Digest(text)]; file != nil && file.is(&old) {
			file.read = min(old.read, now) // the clock may have been ahead
		}
	}
}

// RereadAll reads all blocks, and condemns those that are not whole. It tells how many there are,
// and what they take.
func (s *blockStore) RereadAll(ctx context.Context, saw func(bytes int64)) (blocks int, bytes int64, err error) {
	sizes := map[Digest]int64{}
	for block, file := range s.files {
		sizes[block] = max(file.size, 0)
		bytes += sizes[block]
	}
	blocks = len(sizes) + len(s.checked.Rotten) // which were found when it was opened
	err = EachBlock(ctx, slices.Collect(maps.Keys(sizes)), func(block Digest) error {
		s.reread(block)
		saw(sizes[block])
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return blocks, bytes, s.index.anew()
}
