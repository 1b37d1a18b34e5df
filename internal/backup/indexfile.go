package backup

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/host"
)

// readIndex reads an index file, if it is what its name says.
func readIndex(path string) (map[Digest][]piece, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if digestOf(text).String() != strings.TrimSuffix(filepath.Base(path), ".idx") {
		return nil, errDigest
	}
	all := map[Digest][]piece{}
	for len(text) >= len(Digest{})+4 {
		var block Digest
		text = text[copy(block[:], text):]
		n := int(binary.LittleEndian.Uint32(text))
		text = text[4:]
		if len(text) < n*pieceLine {
			return nil, errShort
		}
		pieces := make([]piece, n)
		for i := range pieces {
			text = text[copy(pieces[i].digest[:], text):]
			pieces[i].size = binary.LittleEndian.Uint32(text)
			text = text[4:]
		}
		all[block] = pieces
	}
	return all, nil
}

// writeIndex tells of all blocks in one file, and removes those that tell of less. There is nothing to do if the files tell of all.
func (r *Repository) writeIndex() error {
	paths, err := filepath.Glob(r.path("index", "*.idx"))
	if err != nil {
		return err
	}
	known := map[Digest]bool{}
	for _, path := range paths {
		some, _ := readIndex(path)
		for block := range some {
			known[block] = true
		}
	}
	r.index.mu.RLock()
	defer r.index.mu.RUnlock()
	fresh := map[Digest][]piece{}
	for block, pieces := range r.index.blocks {
		if !known[block] || len(paths) >= mostIndexes {
			fresh[block] = pieces
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := r.addIndex(fresh); err != nil || len(paths) < mostIndexes {
		return err
	}
	return removeAll(paths)
}

// mostIndexes is how many index files there are before they are made one.
const mostIndexes = 32

func (r *Repository) addIndex(blocks map[Digest][]piece) error {
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
	path := r.path("index", digestOf(b.Bytes()).String()+".idx")
	return host.WriteFile(host.File{Path: path, Content: b.Bytes(), Mode: 0o600})
}

func removeAll(paths []string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
