package vault

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// An Entry is one path of a tree, with all that makes it what it is.
type Entry struct {
	Name    Name            `json:"p"` // below the tree; "." is the tree itself
	Mode    uint32          `json:"m"` // with the type, as stat(2) gives it
	Uid     uint32          `json:"u"`
	Gid     uint32          `json:"g"`
	Time    int64           `json:"t"` // of the last change of the content, in nanoseconds
	Size    int64           `json:"s,omitempty"`
	Link    Name            `json:"l,omitempty"` // what a symbolic link says
	Same    Name            `json:"h,omitempty"` // the path before it that is the same file
	Major   uint32          `json:"major,omitempty"`
	Minor   uint32          `json:"minor,omitempty"`
	Attrs   Attrs           `json:"x,omitempty"` // extended attributes; ACLs and capabilities are among them
	Data    bounded[Extent] `json:"c,omitempty"` // what of a file is no hole
	Ino     uint64          `json:"i,omitempty"`
	Changed int64           `json:"k,omitempty"` // time of the last change of anything, in nanoseconds; 0: not to be relied upon
}

// An Extent is a part of a file between holes.
type Extent struct {
	At     int64   `json:"o"`
	Size   int64   `json:"n"`
	Pieces digests `json:"d"` // cut where the offset in the file is a multiple of pieceSize
}

// Attrs are extended attributes by name.
type Attrs map[string][]byte

// Kind is what it is, of S_IFMT.
func (e *Entry) Kind() uint32 { return e.Mode & unix.S_IFMT }

// IsFile reports whether it is a regular file.
func (e *Entry) IsFile() bool { return e.Kind() == unix.S_IFREG }

// IsDir reports whether it is a directory.
func (e *Entry) IsDir() bool { return e.Kind() == unix.S_IFDIR }

// IsFirst reports whether it is no other name of an entry before it.
func (e *Entry) IsFirst() bool { return e.Same == "" }

// A Name is a file name or path: any bytes but 0. Such as are no UTF-8 are written in base64.
type Name string

const escape = "base64:"

// MarshalText writes it so that JSON can bear it.
func (n Name) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(n)) && !strings.HasPrefix(string(n), escape) {
		return []byte(n), nil
	}
	return []byte(escape + base64.StdEncoding.EncodeToString([]byte(n))), nil
}

// UnmarshalText reads what MarshalText wrote.
func (n *Name) UnmarshalText(text []byte) error {
	code, escaped := strings.CutPrefix(string(text), escape)
	if !escaped {
		*n = Name(text)
		return nil
	}
	plain, err := base64.StdEncoding.DecodeString(code)
	*n = Name(plain)
	return err
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
		if b.Len()-before > mostLine {
			return nil, problem.New(problem.Unable, "%s is too large to be kept: %d MiB", entries[i].Name, entries[i].Size>>20)
		}
	}
	return b.Bytes(), nil
}

// mostLine bounds a line of a list. A file of 1.9 TiB has one that long.
const mostLine = 128 << 20

// ErrBounds says that there is more of something than any backup has.
var ErrBounds = errors.New("there is more of it than in any backup")

// eachEntry reads what writeList wrote, one entry after another, and refuses what no walk of a tree can have given. Whoever wrote the
// list decides how long it is, so it is not kept in memory.
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
		if len(room)+len(part) > mostLine {
			return nil, fmt.Errorf("a line of more than %d MiB: %w", mostLine>>20, ErrBounds)
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
	if !inside(e.Name) || e.Same != "" && !inside(e.Same) {
		return errors.New("the path leads out of its tree")
	}
	if e.Size < 0 || len(e.Link) >= unix.PathMax || strings.Contains(string(e.Link), "\x00") {
		return errors.New("no file is like that")
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

// Chunk gives the size of the piece of a file that begins at an offset, of a part that ends at another.
func Chunk(at, end int64) int64 { return min(PieceSize-at%PieceSize, end-at) }

// UnmarshalJSON reads attributes, of which no file has many.
func (a *Attrs) UnmarshalJSON(text []byte) error {
	const most = 2 << 20 // the kernel takes names of 64 KiB together; each value may have as much, but hardly any file system takes that
	if len(text) > most {
		return fmt.Errorf("extended attributes of %d bytes: %w", len(text), ErrBounds)
	}
	return json.Unmarshal(text, (*map[string][]byte)(a))
}

func inside(n Name) bool {
	name := string(n)
	return name != "" && !path.IsAbs(name) && path.Clean(name) == name && name != ".." && !strings.HasPrefix(name, "../") && !strings.Contains(name, "\x00")
}

// TooMuch says why an entry is more than a list can be read with.
func (e *Entry) TooMuch() string {
	size := 0
	for name, value := range e.Attrs {
		size += len(name) + len(value)
	}
	switch {
	case size > mostAttributes && e.Name != ".":
		return fmt.Sprintf("%d bytes of extended attributes", size)
	case len(e.Data) > mostElements:
		return fmt.Sprintf("a file of %d parts with holes between them", len(e.Data))
	}
	return ""
}

// mostAttributes is how many bytes of extended attributes a file may have; half of what a list is read with.
const mostAttributes = 1 << 20
