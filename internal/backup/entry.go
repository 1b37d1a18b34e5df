package backup

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// An Entry is one path of a tree, with all that makes it what it is.
type Entry struct {
	Name    Name              `json:"p"` // below the tree; "." is the tree itself
	Mode    uint32            `json:"m"` // with the type, as stat(2) gives it
	Uid     uint32            `json:"u"`
	Gid     uint32            `json:"g"`
	Time    int64             `json:"t"` // of the last change of the content, in nanoseconds
	Size    int64             `json:"s,omitempty"`
	Link    Name              `json:"l,omitempty"` // what a symbolic link says
	Same    Name              `json:"h,omitempty"` // the path before it that is the same file
	Major   uint32            `json:"major,omitempty"`
	Minor   uint32            `json:"minor,omitempty"`
	Attrs   map[string][]byte `json:"x,omitempty"` // extended attributes; ACLs and capabilities are among them
	Data    []Extent          `json:"c,omitempty"` // what of a file is no hole
	Ino     uint64            `json:"i,omitempty"`
	Changed int64             `json:"k,omitempty"` // time of the last change of anything, in nanoseconds; 0: not to be relied upon
}

// An Extent is a part of a file between holes.
type Extent struct {
	At     int64    `json:"o"`
	Size   int64    `json:"n"`
	Pieces []Digest `json:"d"` // cut where the offset in the file is a multiple of pieceSize
}

func (e *Entry) kind() uint32  { return e.Mode & unix.S_IFMT }
func (e *Entry) isFile() bool  { return e.kind() == unix.S_IFREG }
func (e *Entry) isDir() bool   { return e.kind() == unix.S_IFDIR }
func (e *Entry) isFirst() bool { return e.Same == "" }

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

// writeList writes entries, a line of JSON for each.
func writeList(entries []Entry) ([]byte, error) {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	for i := range entries {
		if err := lines.Encode(&entries[i]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// readList reads what writeList wrote, and refuses what could lead out of the tree.
func readList(from io.Reader) ([]Entry, error) {
	var entries []Entry
	lines := json.NewDecoder(bufio.NewReaderSize(from, 1<<16))
	for {
		var e Entry
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		if !inside(e.Name) || e.Same != "" && !inside(e.Same) {
			return nil, fmt.Errorf("the path %q leads out of its tree", e.Name)
		}
		entries = append(entries, e)
	}
}

func inside(n Name) bool {
	name := string(n)
	return name != "" && !path.IsAbs(name) && path.Clean(name) == name && name != ".." && !strings.HasPrefix(name, "../") && !strings.Contains(name, "\x00")
}
