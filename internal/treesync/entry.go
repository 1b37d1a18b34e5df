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

// An Entry is what is at one path of a tree, but for the content of a file. The lists of trees in
// backups have it in this form.
type Entry struct {
	Name  Name   `json:"p"` // below the tree; "." is the tree itself
	Mode  uint32 `json:"m"` // with the type, as stat(2) returns it
	Uid   uint32 `json:"u"`
	Gid   uint32 `json:"g"`
	Time  int64  `json:"t"` // of the last change of the content, in nanoseconds
	Size  int64  `json:"s,omitempty"`
	Link  Name   `json:"l,omitempty"` // what a symbolic link says
	Same  Name   `json:"h,omitempty"` // the path before it that is the same file
	Major uint32 `json:"major,omitempty"`
	Minor uint32 `json:"minor,omitempty"`
	Attrs Attrs  `json:"x,omitempty"` // extended attributes; ACLs and capabilities are among them
}

// EntryOf returns the entry that a walk has come to, as far as stat(2) tells. Read adds the rest.
func EntryOf(at *tree.Entry) Entry {
	st := &at.Stat
	return Entry{Name: Name(at.Path), Mode: st.Mode, Uid: st.Uid, Gid: st.Gid, Time: st.Mtim.Nano()}
}

// Read adds what a symbolic link says, and the extended attributes that a policy lets through.
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

// Made returns the entry as package tree makes it, with the extended attributes that a policy lets through.
func (e *Entry) Made(policy Policy) *tree.Made {
	return &tree.Made{
		Path: string(e.Name), Mode: e.Mode, Uid: int(e.Uid), Gid: int(e.Gid), Modified: time.Unix(0, e.Time),
		Link: string(e.Link), Same: string(e.Same),
		Attrs: policy.Filter(e.Attrs),
	}
}

// Check refuses an entry that could lead out of its tree, or that no file has.
func (e *Entry) Check() error {
	if !e.Name.Inside() || e.Same != "" && !e.Same.Inside() {
		return errors.New("the path leads out of its tree")
	}
	if e.Size < 0 || len(e.Link) >= unix.PathMax || strings.Contains(string(e.Link), "\x00") {
		return errors.New("no file is like that")
	}
	if e.Size > 0 && !e.IsFile() {
		return errors.New("it is not a file, but has content")
	}
	return nil
}

// Kind is what it is, of S_IFMT.
func (e *Entry) Kind() uint32 { return e.Mode & unix.S_IFMT }

// IsFile reports whether it is a regular file.
func (e *Entry) IsFile() bool { return e.Kind() == unix.S_IFREG }

// IsDir reports whether it is a directory.
func (e *Entry) IsDir() bool { return e.Kind() == unix.S_IFDIR }

// IsFirst reports whether it is no other name of an entry before it.
func (e *Entry) IsFirst() bool { return e.Same == "" }

// A Name is a file name or path: any bytes but 0. Those that are not UTF-8 are written in base64.
type Name string

const escape = "base64:"

// MarshalText writes the name so that JSON can hold it.
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

// Inside reports whether the path leads to a place below its tree, or to the tree itself.
func (n Name) Inside() bool {
	name := string(n)
	return name != "" && !path.IsAbs(name) && path.Clean(name) == name && name != ".." &&
		!strings.HasPrefix(name, "../") && !strings.Contains(name, "\x00")
}

// Attrs are extended attributes by name.
type Attrs map[string][]byte

// UnmarshalJSON reads attributes, of which no file has many.
func (a *Attrs) UnmarshalJSON(text []byte) error {
	// the kernel takes names of 64 KiB together; each value may have as much, but hardly any file
	// system takes that
	const maxBytes = 2 << 20
	if len(text) > maxBytes {
		return fmt.Errorf("extended attributes of %d bytes: %w", len(text), tree.ErrTooLarge)
	}
	return jsonlimit.Unmarshal(text, (*map[string][]byte)(a))
}
