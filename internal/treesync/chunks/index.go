package chunks

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/image/sums"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// PieceSize is the number of bytes in a piece. A smaller file is one piece.
const PieceSize = sums.PieceSize

// Limits of an index. No layer has more.
const (
	maxEntries     = 4 << 20
	maxTextBytes   = 1 << 30   // bytes of an unpacked index
	maxPackedBytes = 256 << 20 // bytes of a packed index
	maxLineBytes   = 16 << 20
)

// An Entry describes a path of a tree.
type Entry struct {
	treesync.Entry
	Sum    string   `json:"sum,omitempty"`    // SHA-256 of a file
	Pieces []string `json:"pieces,omitempty"` // digests of its pieces, if it has more than one
}

// An Index is a tree without the content of its files.
type Index struct {
	Note    json.RawMessage // more information about the layer
	Entries []Entry         // in the order of tree.Root.Walk
}

// NewIndex returns the index of a tree that does not change. Digests has the digests of its files by
// path.
func NewIndex(ctx context.Context, dir string, digests map[string]string, note any) (*Index, error) {
	root, err := tree.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := json.Marshal(note)
	if err != nil {
		return nil, err
	}
	x := &Index{Note: text}
	first := map[uint64]treesync.Name{} // first names of files with several names, by inode
	err = root.Walk(ctx, tree.DefaultBounds, func(e *tree.Entry) error {
		if tree.IsDevice(&e.Stat) {
			return nil // layers built by earlier versions may contain devices
		}
		entry := Entry{Entry: treesync.NewEntry(e)}
		if err := entry.Read(e, treesync.ContentAttrs); err != nil {
			return err
		}
		if entry.IsFile() {
			if err := entry.read(ctx, e, digests[path.Join("/", e.Path)]); err != nil {
				return err
			}
			if e.Stat.Nlink > 1 {
				if same, ok := first[e.Stat.Ino]; ok {
					entry.Same = same
				} else {
					first[e.Stat.Ino] = entry.Name
				}
			}
		}
		x.Entries = append(x.Entries, entry)
		return nil
	})
	return x, err
}

// read adds the size and digests of a file.
func (e *Entry) read(ctx context.Context, at *tree.Entry, sum string) error {
	if e.Size, e.Sum = at.Stat.Size, sum; e.Size <= PieceSize {
		return nil
	}
	fd, _, err := tree.OpenEntry(at.Dir, at.Name)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), at.Path)
	defer f.Close()
	e.Pieces, err = sums.PieceDigests(ctx, f)
	return err
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Lines returns the index in the form of a layer's manifest: one line per path, sorted.
func (x *Index) Lines() []string {
	lines := make([]string, len(x.Entries))
	for i := range x.Entries {
		lines[i] = x.Entries[i].line()
	}
	slices.Sort(lines)
	return lines
}

func (e *Entry) line() string {
	line := fmt.Sprintf("%q %06o %d:%d", path.Join("/", string(e.Name)), e.Mode, e.Uid, e.Gid)
	switch e.Kind() {
	case unix.S_IFLNK:
		line += fmt.Sprintf(" -> %q", e.Link)
	case unix.S_IFCHR:
		line += " dev 0:0"
	}
	for _, name := range slices.Sorted(maps.Keys(e.Attrs)) {
		line += fmt.Sprintf(" %s=%x", name, e.Attrs[name])
	}
	if e.Kind() == unix.S_IFREG {
		line += " " + e.Sum
	}
	return line
}

// Pack writes the index in the form in which it is sent.
func (x *Index) Pack(to io.Writer) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	all := json.NewEncoder(z)
	if err := all.Encode(x.Note); err != nil {
		return err
	}
	for i := range x.Entries {
		if err := all.Encode(&x.Entries[i]); err != nil {
			return err
		}
	}
	return z.Close()
}

// ReadIndex reads an index from another host. It returns an error if the index cannot be that of a
// container with the user ids 0 to ids-1.
func ReadIndex(from io.Reader, ids uint32) (*Index, error) {
	z, err := gzip.NewReader(io.LimitReader(from, maxPackedBytes))
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(&io.LimitedReader{R: z, N: maxTextBytes})
	lines.Buffer(nil, maxLineBytes)
	if !lines.Scan() {
		return nil, errors.Join(errors.New("the index is empty"), lines.Err())
	}
	x := &Index{Note: slices.Clone(lines.Bytes())}
	c := checker{ids: ids, files: map[string]*Entry{}, sums: map[string]*Entry{}}
	for lines.Scan() {
		if len(x.Entries) == maxEntries {
			return nil, fmt.Errorf("more than %d paths: %w", maxEntries, tree.ErrTooLarge)
		}
		e := &Entry{}
		if err := jsonlimit.Unmarshal(lines.Bytes(), e); err != nil {
			return nil, err
		}
		if err := c.check(e); err != nil {
			return nil, fmt.Errorf("%s: %w", tree.DisplayPath(string(e.Name)), err)
		}
		x.Entries = append(x.Entries, *e)
	}
	return x, lines.Err()
}

// checker checks the entries of an index against each other. tree.Builder checks that paths are
// legal and in order.
type checker struct {
	ids   uint32
	files map[string]*Entry // by path
	sums  map[string]*Entry // the first with this content
}

func (c *checker) check(e *Entry) error {
	if err := e.Check(); err != nil {
		return err
	}
	whiteout := e.Kind() == unix.S_IFCHR
	switch {
	case !whiteout && (e.Uid >= c.ids || e.Gid >= c.ids):
		return fmt.Errorf("its owner %d:%d does not exist in containers", e.Uid, e.Gid)
	case whiteout && (e.Uid != 0 || e.Gid != 0):
		return errors.New("it is an overlayfs whiteout with an owner")
	case !slices.Contains([]uint32{unix.S_IFREG, unix.S_IFDIR, unix.S_IFLNK, unix.S_IFIFO, unix.S_IFCHR}, e.Kind()) ||
		e.Mode>>16 != 0:
		return fmt.Errorf("it is %s", tree.Kind(e.Mode))
	}
	for name := range e.Attrs {
		if !treesync.ContentAttrs.Includes(name) {
			return fmt.Errorf("the attribute %s is not allowed", tree.DisplayPath(name))
		}
	}
	if e.Kind() != unix.S_IFREG {
		if e.Sum != "" || len(e.Pieces) > 0 || e.Same != "" {
			return errors.New("it is not a file, but has content")
		}
		return nil
	}
	return c.file(e)
}

func (c *checker) file(e *Entry) error {
	pieces := 0
	if e.Size > PieceSize {
		pieces = int((e.Size + PieceSize - 1) / PieceSize)
	}
	if len(e.Pieces) != pieces || !validSum(e.Sum) ||
		slices.ContainsFunc(e.Pieces, func(s string) bool { return !validSum(s) }) {
		return errors.New("its digests do not match its size")
	}
	if first, ok := c.sums[e.Sum]; !ok {
		c.sums[e.Sum] = e
	} else if first.Size != e.Size || !slices.Equal(first.Pieces, e.Pieces) {
		return errors.New("another file has the same digest but another size")
	}
	if e.Same != "" {
		of, ok := c.files[string(e.Same)]
		if !ok || of.line()[len(fmt.Sprintf("%q", path.Join("/", string(of.Name)))):] != e.line()[len(fmt.Sprintf("%q",
			path.Join("/", string(e.Name)))):] {
			return errors.New("it is a hard link to a file with other attributes")
		}
	}
	c.files[string(e.Name)] = e
	return nil
}

func validSum(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == sha256.Size && strings.ToLower(text) == text
}
