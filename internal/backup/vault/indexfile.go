package vault

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"orrery/internal/tree"
)

// indexFiles are the files that list the pieces of blocks.
type indexFiles struct{ *directory }

// read reads an index file, and returns an error if it does not match its name.
func (x indexFiles) read(name string) (map[Digest][]piece, error) {
	f, err := x.root.OpenFile("index/" + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	all, err := blocksOf(bufio.NewReaderSize(io.TeeReader(f, sum), 1<<16))
	if err != nil {
		return nil, err
	}
	if hex.EncodeToString(sum.Sum(nil)) != strings.TrimSuffix(name, ".idx") {
		return nil, errDigest
	}
	return all, nil
}

// blocksOf parses an index file. For each block, it has the block's digest, the number of pieces,
// and the pieces.
func blocksOf(from io.Reader) (map[Digest][]piece, error) {
	all := map[Digest][]piece{}
	for count := 0; ; {
		var head [len(Digest{}) + 4]byte
		if _, err := io.ReadFull(from, head[:]); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		n := int(binary.LittleEndian.Uint32(head[len(Digest{}):]))
		if n > maxHeadBytes/pieceLine || count+n > tree.DefaultBounds.All {
			return nil, ErrBounds
		}
		count += n
		var pieces []piece // grows with the data that is really there, because the number may be wrong
		for range n {
			var line [pieceLine]byte
			if _, err := io.ReadFull(from, line[:]); err != nil {
				return nil, errTruncated
			}
			p := piece{size: binary.LittleEndian.Uint32(line[len(Digest{}):])}
			copy(p.digest[:], line[:])
			pieces = append(pieces, p)
		}
		if err := checkPieces(pieces); err != nil {
			return nil, err
		}
		all[Digest(head[:len(Digest{})])] = pieces
	}
}

// names returns the names of the index files.
func (x indexFiles) names() ([]string, error) {
	names, err := x.root.Names("index", MaxNames)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(names, func(name string) bool {
		var d Digest
		digest, ok := strings.CutSuffix(name, ".idx")
		return !ok || d.UnmarshalText([]byte(digest)) != nil
	}), err
}

// save writes an index file for the blocks that no index file lists. If there are too many index
// files, it writes one for all blocks and removes the others. If all blocks are listed, it does
// nothing.
func (x indexFiles) save(index *index) error {
	names, err := x.names()
	if err != nil {
		return err
	}
	known := map[Digest]bool{}
	for _, name := range names {
		some, _ := x.read(name)
		for block := range some {
			known[block] = true
		}
	}
	index.mu.RLock()
	defer index.mu.RUnlock()
	fresh := map[Digest][]piece{}
	for block, pieces := range index.blocks {
		if !known[block] || len(names) >= maxIndexes {
			fresh[block] = pieces
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := x.add(fresh); err != nil || len(names) < maxIndexes {
		return err
	}
	return x.remove(names)
}

// maxIndexes is the number of index files at which they are merged.
const maxIndexes = 32

func (x indexFiles) add(blocks map[Digest][]piece) error {
	var b bytes.Buffer
	order := slices.SortedFunc(maps.Keys(blocks), func(a, b Digest) int { return bytes.Compare(a[:], b[:]) })
	for _, block := range order {
		pieces := blocks[block]
		b.Write(block[:])
		b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(pieces))))
		for _, p := range pieces {
			b.Write(p.digest[:])
			b.Write(binary.LittleEndian.AppendUint32(nil, p.size))
		}
	}
	return x.write("index/"+digestOf(b.Bytes()).String()+".idx", b.Bytes())
}

func (x indexFiles) remove(names []string) error {
	for _, name := range names {
		if err := x.root.RemoveAll("index/" + name); err != nil {
			return err
		}
	}
	return nil
}
