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

	"orrery/internal/strict/jsonlimit"
	"orrery/internal/transport/frame"
	"orrery/internal/tree"
)

// Kinds of frames. The JSON type of the content follows the colon.
const (
	passStart = 'B' // a pass begins: start
	treeStart = 'T' // the tree of this name follows
	dirStart  = 'D' // a directory that is new or has changes in it
	dirEnd    = 'L' // a directory, after its content: entry
	fileStart = 'F' // a regular file: entry
	content   = 'C' // part of the file: an offset and bytes
	hole      = 'Z' // part of the file: an offset and the size of a hole
	fileEnd   = 'E' // the file's final attributes: entry
	special   = 'O' // any other kind of file: entry
	link      = 'H' // another name of a file: entry
	removed   = 'R' // a path that was removed
	treeGone  = 'U' // the tree of this name was removed
	hasPath   = 'K' // from the receiver, a path that it has: entry
	blockSums = 'S' // of that path: numbers of blocks with their digests
	listEnd   = 'Y' // the end of the list of what the receiver has
	passEnd   = 'X' // the end of the pass: end
)

// blockSize is the unit in which files are compared and sent.
const blockSize = 64 << 10

// maxFrameBytes limits a frame. Extended attributes may have some hundreds of kilobytes.
const maxFrameBytes = 4 << 20

// A progress describes what the receiver has.
type progress struct {
	Sum  string `json:"sum"`  // "" if no pass is complete
	Kept bool   `json:"kept"` // the receiver has a part of the same trees
}

// A start announces a pass.
type start struct {
	Base   string `json:"base,omitempty"`   // the digest of what the receiver has, or "" if everything is sent
	Resume bool   `json:"resume,omitempty"` // the receiver lists what it has, and everything else is sent
	Nonce  string `json:"nonce"`
	Bytes  int64  `json:"bytes"` // of content; files may grow or shrink during the pass
}

// An end closes a pass.
type end struct {
	Whole bool `json:"whole,omitempty"` // nothing can have changed during the pass
}

// An entry is a path of a tree.
type entry struct {
	Entry
	Patch bool `json:"patch,omitempty"` // write the following content over the existing file
}

// conn writes, reads and hashes frames.
type conn struct {
	from io.Reader
	to   *bufio.Writer // flushed before each read
	sum  hash.Hash
}

func newConn(rw io.ReadWriter) *conn {
	return &conn{from: bufio.NewReaderSize(rw, blockSize), to: bufio.NewWriterSize(rw, blockSize), sum: sha256.New()}
}

func (c *conn) restart(base string) {
	c.sum = sha256.New()
	c.sum.Write([]byte(base)) //nolint:errcheck // a hash takes everything
}

func (c *conn) digest() string { return hex.EncodeToString(c.sum.Sum(nil)) }

func (c *conn) frame(kind byte, parts ...[]byte) error {
	b := frame.Append(nil, kind, parts...)
	if len(b) > maxFrameBytes {
		return fmt.Errorf("a message of %d bytes is too large", len(b))
	}
	c.sum.Write(b) //nolint:errcheck // a hash takes everything
	_, err := c.to.Write(b)
	return err
}

func (c *conn) writeJSON(kind byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return c.frame(kind, text)
}

var errProtocol = errors.New("the other host violated the protocol")

func (c *conn) next() (kind byte, b []byte, err error) {
	if err := c.to.Flush(); err != nil {
		return 0, nil, err
	}
	if kind, b, err = frame.Read(c.from, maxFrameBytes, nil); err == nil {
		c.hashFrame(kind, b)
	}
	return kind, b, err
}

// hashFrame adds a received frame to the hash.
func (c *conn) hashFrame(kind byte, b []byte) {
	c.sum.Write(frame.Append(nil, kind, b)) //nolint:errcheck // a hash takes everything
}

// readJSON reads one frame of a kind.
func (c *conn) readJSON(kind byte, into any) error {
	got, b, err := c.next()
	if err != nil {
		return err
	}
	if got != kind || jsonlimit.Unmarshal(b, into) != nil {
		return errProtocol
	}
	return nil
}

// validTree reports whether name is a valid name of a tree: one or two path elements.
func validTree(name string) bool {
	return tree.ValidPath(name) && strings.Count(name, "/") < 2 && !strings.HasPrefix(path.Base(name), ".")
}

// freeBytes returns how many bytes of a file system may be used. It leaves 2 % to others.
func freeBytes(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail)*fs.Bsize - int64(fs.Blocks)*fs.Bsize/50, nil //nolint:gosec // no disk is that large
}
