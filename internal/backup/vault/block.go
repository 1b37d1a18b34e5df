package vault

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/zstd"
)

// A block is a file of its own: a skippable zstd frame with the digests and sizes of the pieces,
// then one frame with the content of all pieces. So `zstd -dc` returns the content, and the list of
// pieces can be read from the start of the file.
const (
	PieceSize = 1 << 20 // maximum size
	blockSize = 4 << 20 // approximate size before compression

	// before compression: a block is complete with the piece that makes it reach blockSize
	maxContentBytes = blockSize + PieceSize
	maxHeadBytes    = 64 << 20
	maxBlockBytes   = 8 + maxHeadBytes + maxContentBytes + maxContentBytes>>7 // incompressible content grows a little
	// the number of pieces for a new block; former versions had no limit
	maxPieces = 1 << 16

	skippable = 0x184D2A5E
	pieceLine = len(Digest{}) + 4
)

// A piece is a part of a block.
type piece struct {
	digest Digest
	size   uint32
}

// errBlock is the error for a file that no version of Orrery has written as a block.
var errBlock = errors.New("it is not a block of a backup")

var (
	// The fastest level needs two thirds of the time of the next one, and makes a system's files
	// smaller by 61% instead of 64%.
	compressor, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(workers),
		zstd.WithEncoderCRC(false)) //nolint:errcheck // the options are right
	decompressor, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(workers), zstd.WithDecoderMaxMemory(maxContentBytes))
)

// encodeBlock returns a block of the pieces. It reuses the memory of room.
func encodeBlock(room []byte, pieces []piece, content []byte) []byte {
	head := append(room[:0], make([]byte, 8)...)
	binary.LittleEndian.PutUint32(head, skippable)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(pieces)*pieceLine))
	for _, p := range pieces {
		head = append(head, p.digest[:]...)
		head = binary.LittleEndian.AppendUint32(head, p.size)
	}
	return compressor.EncodeAll(content, head)
}

// headSize returns the length of the list of pieces at the start of a block, from the first eight
// bytes.
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

// piecesOf returns the list of pieces of a block. Each is in it only once, and their total size is
// at most that of a block. So the memory for the list is in proportion to content that was really
// written.
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
	return all, checkPieces(all)
}

// checkPieces returns an error if the pieces cannot be those of one block.
func checkPieces(pieces []piece) error {
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

// contentOf returns the content of all pieces of a block.
func contentOf(block []byte) ([]byte, error) {
	pieces, err := piecesOf(block)
	if err != nil {
		return nil, err
	}
	content, err := decompressor.DecodeAll(block[8+len(pieces)*pieceLine:], nil)
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
