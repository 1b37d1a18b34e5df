package vault

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"orrery/internal/problem"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// An Entry is one path of a tree, with all that makes it what it is.
type Entry struct {
	treesync.Entry
	Data bounded[Extent] `json:"c,omitempty"` // what of a file is no hole
	Ino  uint64          `json:"i,omitempty"`
	// time of the last change of anything, in nanoseconds; 0: not to be relied upon
	Changed int64 `json:"k,omitempty"`
}

// An Extent is a part of a file between holes.
type Extent struct {
	At     int64   `json:"o"`
	Size   int64   `json:"n"`
	Pieces digests `json:"d"` // cut where the offset in the file is a multiple of pieceSize
}

// WriteList writes entries, a line of JSON for each.
func WriteList(entries []Entry) ([]byte, error) {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	for i := range entries {
		before := b.Len()
		if err := lines.Encode(&entries[i]); err != nil {
			return nil, err
		}
		if b.Len()-before > maxLineBytes {
			return nil, problem.New(problem.Unable, "%s is too large to be kept: %d MiB", entries[i].Name, entries[i].Size>>20)
		}
	}
	return b.Bytes(), nil
}

// maxLineBytes bounds a line of a list. A file of 1.9 TiB has one that long.
const maxLineBytes = 128 << 20

// ErrBounds says that there is more of something than any backup has.
var ErrBounds = errors.New("there is more of it than in any backup")

// eachEntry reads what writeList wrote, one entry after another, and refuses what no walk of a tree
// can have given. Whoever wrote the list decides how long it is, so it is not kept in memory.
func eachEntry(from io.Reader, visit func(*Entry) error) error {
	lines := bufio.NewReaderSize(from, 1<<16)
	var line []byte
	for n := 0; ; n++ {
		var err error
		if line, err = readLine(lines, line[:0]); errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n > tree.Ample.All {
			return fmt.Errorf("more than %d paths: %w", tree.Ample.All, ErrBounds)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if err := e.check(); err != nil {
			return fmt.Errorf("%q: %w", tree.Shorten(string(e.Name)), err)
		}
		if err := visit(&e); err != nil {
			return err
		}
	}
}

// readLine reads a line without its end into room; io.EOF if there is none.
func readLine(from *bufio.Reader, room []byte) ([]byte, error) {
	for {
		part, err := from.ReadSlice('\n')
		if len(room)+len(part) > maxLineBytes {
			return nil, fmt.Errorf("a line of more than %d MiB: %w", maxLineBytes>>20, ErrBounds)
		}
		room = append(room, part...)
		switch {
		case err == nil:
			return room[:len(room)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(room) > 0:
			return room, nil
		default:
			return nil, err
		}
	}
}

// check refuses an entry that could lead out of its tree, or whose parts are not cut as a file is.
func (e *Entry) check() error {
	if err := e.Check(); err != nil {
		return err
	}
	if (len(e.Data) > 0 || e.Size > 0) && (!e.IsFile() || !e.IsFirst()) {
		return errors.New("it is not a file, but has content")
	}
	end := int64(0)
	for i := range e.Data {
		x := &e.Data[i]
		if x.At < end || x.Size > e.Size-x.At {
			return errors.New("its parts are not in a row, or not in the file")
		}
		end = x.At + x.Size
	}
	return nil
}

// UnmarshalJSON reads a part of a file, which has as many pieces as it is cut into.
func (x *Extent) UnmarshalJSON(text []byte) error {
	type plain Extent
	if err := json.Unmarshal(text, (*plain)(x)); err != nil {
		return err
	}
	if x.At < 0 || x.Size <= 0 || x.At > math.MaxInt64-x.Size {
		return errors.New("a part of no file")
	}
	if want := (x.At+x.Size-1)/PieceSize - x.At/PieceSize + 1; int64(len(x.Pieces)) != want {
		return fmt.Errorf("a part of %d bytes with %d pieces", x.Size, len(x.Pieces))
	}
	return nil
}

// Chunk returns the size of the piece of a file that begins at an offset, of a part that ends at another.
func Chunk(at, end int64) int64 { return min(PieceSize-at%PieceSize, end-at) }

// TooMuch says why an entry is more than a list can be read with.
func (e *Entry) TooMuch() string {
	size := 0
	for name, value := range e.Attrs {
		size += len(name) + len(value)
	}
	switch {
	case size > maxAttributesBytes && e.Name != ".":
		return fmt.Sprintf("%d bytes of extended attributes", size)
	case len(e.Data) > maxElements:
		return fmt.Sprintf("a file of %d parts with holes between them", len(e.Data))
	}
	return ""
}

// maxAttributesBytes is how many bytes of extended attributes a file may have; half of what a list
// is read with.
const maxAttributesBytes = 1 << 20
