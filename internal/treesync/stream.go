package treesync

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/frame"
	"orrery/internal/jsonlimit"
	"orrery/internal/tree"
)

// What a frame is. Each has a length and so many bytes.
const (
	begins  = 'B' // a round: start
	inTree  = 'T' // the tree of this name follows
	entered = 'D' // a directory in which something changes, or that is new
	left    = 'L' // a directory, after what is in it: entry
	opened  = 'F' // a regular file: entry
	content = 'C' // of it: an offset, and bytes
	cleared = 'Z' // of it: an offset, and how much is a hole
	closed  = 'E' // the file, as it is to be: entry
	other   = 'O' // what is neither: entry
	linked  = 'H' // another name of a file: entry
	gone    = 'R' // a path that is there no more
	ends    = 'X' // the round: end
)

// piece is the unit in which files are compared and sent.
const piece = 64 << 10

// mostFrame bounds a frame: extended attributes may have some hundreds of kilobytes.
const mostFrame = 4 << 20

// An at tells how far the receiving end is; "": it has nothing.
type at struct {
	Sum string `json:"sum"`
}

// A start announces a round.
type start struct {
	Base  string `json:"base,omitempty"` // what the receiving end has; "": all is sent
	Nonce string `json:"nonce"`
	Bytes int64  `json:"bytes"` // at most so many of content come, but for what changes meanwhile
}

// An end closes a round.
type end struct {
	Whole bool `json:"whole,omitempty"` // nothing can have changed meanwhile
}

// An entry is a path of a tree.
type entry struct {
	Entry
	Patch bool `json:"patch,omitempty"` // what follows is put over what is there
}

// line writes and reads frames, and sums them up.
type line struct {
	from io.Reader
	to   *bufio.Writer // what is in it goes before anything is waited for
	sum  hash.Hash
}

func newLine(way io.ReadWriter) *line {
	return &line{from: bufio.NewReaderSize(way, piece), to: bufio.NewWriterSize(way, piece), sum: sha256.New()}
}

func (l *line) restart(base string) {
	l.sum = sha256.New()
	l.sum.Write([]byte(base)) //nolint:errcheck // a hash takes everything
}

func (l *line) said() string { return hex.EncodeToString(l.sum.Sum(nil)) }

func (l *line) frame(kind byte, parts ...[]byte) error {
	b := frame.Append(nil, kind, parts...)
	if len(b) > mostFrame {
		return fmt.Errorf("%d bytes at once are too many", len(b))
	}
	l.sum.Write(b) //nolint:errcheck // a hash takes everything
	_, err := l.to.Write(b)
	return err
}

func (l *line) tell(kind byte, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return l.frame(kind, text)
}

var errForm = errors.New("the other host sends what makes no sense")

func (l *line) next() (kind byte, b []byte, err error) {
	if err := l.to.Flush(); err != nil {
		return 0, nil, err
	}
	if kind, b, err = frame.Read(l.from, mostFrame, nil); err == nil {
		l.add(kind, b)
	}
	return kind, b, err
}

// add sums up a frame that was read.
func (l *line) add(kind byte, b []byte) {
	l.sum.Write(frame.Append(nil, kind, b)) //nolint:errcheck // a hash takes everything
}

// hear takes one frame of a kind.
func (l *line) hear(kind byte, into any) error {
	is, b, err := l.next()
	if err != nil {
		return err
	}
	if is != kind || jsonlimit.Unmarshal(b, into) != nil {
		return errForm
	}
	return nil
}

// legal reports whether a tree may be called so: a directory, or one in another.
func legal(name string) bool {
	return tree.Legal(name) && strings.Count(name, "/") < 2 && !strings.HasPrefix(path.Base(name), ".")
}

// room gives how many bytes a file system has for us: some are left to others.
func room(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail)*fs.Bsize - int64(fs.Blocks)*fs.Bsize/50, nil //nolint:gosec // no disk is that large
}
