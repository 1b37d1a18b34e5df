package vault

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/zstd"
)

// A block is a file of its own: a skippable frame of zstd with the digests and sizes of the pieces,
// then one frame with these in a row. So `zstd -dc` gives the content, and what pieces there are
// can be told from the beginning of the file.
const (
	PieceSize = 1 << 20 // at most
	blockSize = 4 << 20 // about, before compression

	// before compression: a block is closed by the piece with which it has blockSize
	maxContentBytes = blockSize + PieceSize
	maxHeadBytes    = 64 << 20
	maxBlockBytes   = 8 + maxHeadBytes + maxContentBytes + maxContentBytes>>7 // what does not compress grows a little
	// that are put in one block; formerly any number was
	maxPieces = 1 << 16

	skippable = 0x184D2A5E
	pieceLine = len(Digest{}) + 4
)

// A piece is one of a block.
type piece struct {
	digest Digest
	size   uint32
}

// errBlock: what is there cannot have been written as a block.
var errBlock = errors.New("this is no block of a backup")

var (
	// The fastest level: it takes two thirds of the time of the next one, and makes a system's files
	// smaller by 61% instead of 64%.
	packing, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(workers),
		zstd.WithEncoderCRC(false)) //nolint:errcheck // the options are right
	unpacking, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(workers), zstd.WithDecoderMaxMemory(maxContentBytes))
)

// seal makes a block of pieces, in the room of a former one.
func seal(room []byte, pieces []piece, content []byte) []byte {
	head := append(room[:0], make([]byte, 8)...)
	binary.LittleEndian.PutUint32(head, skippable)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(pieces)*pieceLine))
	for _, p := range pieces {
		head = append(head, p.digest[:]...)
		head = binary.LittleEndian.AppendUint32(head, p.size)
	}
	return packing.EncodeAll(content, head)
}

// headSize returns the length of the part of a block that lists its pieces, from its first eight bytes.
func headSize(first []byte) (int, error) {
	if len(first) < 8 || binary.LittleEndian.Uint32(first) != skippable {
		return 0, errBlock
	}
	size := int(binary.LittleEndian.Uint32(first[4:]))
	if size%pieceLine != 0 || size > maxHeadBytes {
		return 0, errBlock
	}
	return 8 + size, nil
}

// piecesOf reads which pieces are in a block. None is in it twice, and together they are what a
// block holds: so all that is remembered of blocks was written by somebody, byte by byte.
func piecesOf(block []byte) ([]piece, error) {
	size, err := headSize(block)
	if err != nil || len(block) < size {
		return nil, errBlock
	}
	all := make([]piece, 0, (size-8)/pieceLine)
	for at := 8; at < size; at += pieceLine {
		var p piece
		copy(p.digest[:], block[at:])
		p.size = binary.LittleEndian.Uint32(block[at+len(p.digest):])
		all = append(all, p)
	}
	return all, sound(all)
}

// sound refuses pieces that are not those of one block.
func sound(pieces []piece) error {
	seen := make(map[Digest]bool, min(len(pieces), 1<<10))
	sum := int64(0)
	for _, p := range pieces {
		if sum += int64(p.size); p.size == 0 || p.size > PieceSize || sum > maxContentBytes || seen[p.digest] {
			return errBlock
		}
		seen[p.digest] = true
	}
	return nil
}

// contentOf returns the pieces of a block in a row.
func contentOf(block []byte) ([]byte, error) {
	pieces, err := piecesOf(block)
	if err != nil {
		return nil, err
	}
	content, err := unpacking.DecodeAll(block[8+len(pieces)*pieceLine:], nil)
	if err != nil {
		return nil, err
	}
	sum := 0
	for _, p := range pieces {
		sum += int(p.size)
	}
	if sum != len(content) {
		return nil, errBlock
	}
	return content, nil
}
