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

// An Entry is one path of a tree, with all its metadata.
type Entry struct {
	treesync.Entry
	Data bounded[Extent] `json:"c,omitempty"` // the content, without the holes
	Ino  uint64          `json:"i,omitempty"`
	// time of the last change of content or metadata, in nanoseconds, or 0 if unreliable
	Changed int64 `json:"k,omitempty"`
}

// An Extent is a part of a file between two holes.
type Extent struct {
	At     int64   `json:"o"`
	Size   int64   `json:"n"`
	Pieces digests `json:"d"` // cut where the offset in the file is a multiple of PieceSize
}

// WriteList encodes entries as one line of JSON each.
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
			return nil, problem.New(problem.Unable, "%s is too large for a backup: %d MiB", entries[i].Name, entries[i].Size>>20)
		}
	}
	return b.Bytes(), nil
}

// maxLineBytes limits a line of a list. A file of 1.9 TiB has a line of that length.
const maxLineBytes = 128 << 20

// ErrBounds is the error for a number or size beyond that of any real backup.
var ErrBounds = errors.New("this exceeds the limits of a backup")

// eachEntry parses what WriteList wrote, one entry at a time, and refuses entries that no walk of a
// tree can produce. The author of the list determines its length, so it is not kept in memory.
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
		if n > tree.DefaultBounds.All {
			return fmt.Errorf("more than %d paths: %w", tree.DefaultBounds.All, ErrBounds)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if err := e.check(); err != nil {
			return fmt.Errorf("%q: %w", tree.DisplayPath(string(e.Name)), err)
		}
		if err := visit(&e); err != nil {
			return err
		}
	}
}

// readLine reads a line without its end into room. It returns io.EOF if there is none.
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

// check returns an error if an entry could lead outside its tree, or if its extents are not those
// of a file.
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
			return errors.New("its extents are not in order, or exceed the file")
		}
		end = x.At + x.Size
	}
	return nil
}

// UnmarshalJSON parses an extent, and checks that it has the right number of pieces.
func (x *Extent) UnmarshalJSON(text []byte) error {
	type plain Extent
	if err := json.Unmarshal(text, (*plain)(x)); err != nil {
		return err
	}
	if x.At < 0 || x.Size <= 0 || x.At > math.MaxInt64-x.Size {
		return errors.New("invalid extent")
	}
	if want := (x.At+x.Size-1)/PieceSize - x.At/PieceSize + 1; int64(len(x.Pieces)) != want {
		return fmt.Errorf("an extent of %d bytes with %d pieces", x.Size, len(x.Pieces))
	}
	return nil
}

// Chunk returns the size of the piece that starts at offset at of a file, in an extent that ends at
// end.
func Chunk(at, end int64) int64 { return min(PieceSize-at%PieceSize, end-at) }

// ExceedsLimit returns why an entry exceeds the limits with which lists are read, or "".
func (e *Entry) ExceedsLimit() string {
	size := 0
	for name, value := range e.Attrs {
		size += len(name) + len(value)
	}
	switch {
	case size > maxAttributesBytes && e.Name != ".":
		return fmt.Sprintf("%d bytes of extended attributes", size)
	case len(e.Data) > maxElements:
		return fmt.Sprintf("a sparse file with %d extents", len(e.Data))
	}
	return ""
}

// maxAttributesBytes limits the extended attributes of a file. It is half of the limit with which
// lists are read.
const maxAttributesBytes = 1 << 20
