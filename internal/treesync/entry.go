package treesync

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"orrery/internal/strict/jsonlimit"
	"orrery/internal/tree"
)

// An Entry describes a path of a tree, except for the content of a file. The lists of trees in
// backups use this format.
type Entry struct {
	Name  Name   `json:"p"` // below the tree; "." is the tree itself
	Mode  uint32 `json:"m"` // with the file type, as in stat(2)
	Uid   uint32 `json:"u"`
	Gid   uint32 `json:"g"`
	Time  int64  `json:"t"` // of the last change of the content, in nanoseconds
	Size  int64  `json:"s,omitempty"`
	Link  Name   `json:"l,omitempty"` // the target of a symbolic link
	Same  Name   `json:"h,omitempty"` // an earlier path that is the same file
	Major uint32 `json:"major,omitempty"`
	Minor uint32 `json:"minor,omitempty"`
	Attrs Attrs  `json:"x,omitempty"` // extended attributes, including ACLs and capabilities
}

// NewEntry returns the entry for the current path of a walk, as far as stat(2) tells. Read adds the
// rest.
func NewEntry(at *tree.Entry) Entry {
	st := &at.Stat
	return Entry{Name: Name(at.Path), Mode: st.Mode, Uid: st.Uid, Gid: st.Gid, Time: st.Mtim.Nano()}
}

// Read adds the target of a symbolic link, and the extended attributes that a policy includes.
func (e *Entry) Read(at *tree.Entry, policy Policy) error {
	if e.Kind() == unix.S_IFLNK {
		link, err := tree.ReadLink(at.Dir, at.Name)
		if err != nil {
			return err
		}
		e.Link = Name(link)
	}
	attrs, err := tree.Attributes(at.Dir, at.Name)
	e.Attrs = policy.Filter(attrs)
	return err
}

// Header returns the entry in the form of package tree, with the extended attributes that a policy
// includes.
func (e *Entry) Header(policy Policy) *tree.Header {
	return &tree.Header{
		Path: string(e.Name), Mode: e.Mode, Uid: int(e.Uid), Gid: int(e.Gid), Modified: time.Unix(0, e.Time),
		Link: string(e.Link), Same: string(e.Same),
		Attrs: policy.Filter(e.Attrs),
	}
}

// Check returns an error for an entry that could lead out of its tree, or that cannot exist.
func (e *Entry) Check() error {
	if !e.Name.IsLocal() || e.Same != "" && !e.Same.IsLocal() {
		return errors.New("the path leads out of its tree")
	}
	if e.Size < 0 || len(e.Link) >= unix.PathMax || strings.Contains(string(e.Link), "\x00") {
		return errors.New("its size or link target is invalid")
	}
	if e.Size > 0 && !e.IsFile() {
		return errors.New("it is not a file, but has content")
	}
	return nil
}

// Kind returns the file type (S_IFMT).
func (e *Entry) Kind() uint32 { return e.Mode & unix.S_IFMT }

// IsFile reports whether the entry is a regular file.
func (e *Entry) IsFile() bool { return e.Kind() == unix.S_IFREG }

// IsDir reports whether the entry is a directory.
func (e *Entry) IsDir() bool { return e.Kind() == unix.S_IFDIR }

// IsFirst reports whether the entry is not a hard link to an earlier entry.
func (e *Entry) IsFirst() bool { return e.Same == "" }

// A Name is a file name or path with any bytes but 0. Names that are not valid UTF-8 are written in
// base64.
type Name string

const escape = "base64:"

// MarshalText returns the name in a form that JSON can hold.
func (n Name) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(n)) && !strings.HasPrefix(string(n), escape) {
		return []byte(n), nil
	}
	return []byte(escape + base64.StdEncoding.EncodeToString([]byte(n))), nil
}

// UnmarshalText parses what MarshalText has returned.
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

// IsLocal reports whether the path is below its tree, or the tree itself.
func (n Name) IsLocal() bool {
	name := string(n)
	return name != "" && !path.IsAbs(name) && path.Clean(name) == name && name != ".." &&
		!strings.HasPrefix(name, "../") && !strings.Contains(name, "\x00")
}

// Attrs are extended attributes by name.
type Attrs map[string][]byte

// UnmarshalJSON parses attributes and limits their size.
func (a *Attrs) UnmarshalJSON(text []byte) error {
	// The kernel accepts names of 64 KiB in total. Each value may also have 64 KiB, but hardly any
	// file system supports that much.
	const maxBytes = 2 << 20
	if len(text) > maxBytes {
		return fmt.Errorf("extended attributes of %d bytes: %w", len(text), tree.ErrTooLarge)
	}
	return jsonlimit.Unmarshal(text, (*map[string][]byte)(a))
}
