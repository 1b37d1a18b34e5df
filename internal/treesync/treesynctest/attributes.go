// Package treesynctest has the test cases that every transfer of trees between hosts must pass.
package treesynctest

import (
	"encoding/binary"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"orrery/internal/tree"
)

// An Attribute is an extended attribute, and what becomes of it.
type Attribute struct {
	Name     string
	Carried  bool // between hosts, and back from a backup
	Open     bool // back from a backup to a place that users of the host can reach
	Imported bool // out of an archive
	Lasting  bool // into a backup, and into the digest of a layer
}

// Attributes are one of each kind, and those that are nearly one.
var Attributes = []Attribute{
	{"user.x", true, true, true, true},
	{"user.overlayx", true, true, true, true},
	{"system.posix_acl_access", true, true, true, true},
	{"system.posix_acl_default", true, true, true, true},
	{"security.capability", true, false, true, true},
	{"user.overlay.opaque", true, true, true, true},
	{"user.overlay.whiteout", true, true, true, true},
	{"trusted.overlay.opaque", true, true, false, true},
	{"trusted.overlay.whiteout", true, true, false, true},
	{"trusted.overlay.origin", false, false, false, false},
	{"trusted.overlay.impure", false, false, false, false},
	{"trusted.overlay.nlink", false, false, false, false},
	{"trusted.overlay.uuid", false, false, false, false},
	{"trusted.overlay.upper", false, false, false, false},
	{"trusted.overlay.redirect", false, false, false, true},
	{"trusted.overlay.metacopy", false, false, false, true},
	{"trusted.overlay.opaque2", false, false, false, true},
	{"trusted.x", false, false, false, true},
	{"user.overlay.origin", false, false, false, true},
	{"user.overlay.redirect", false, false, false, true},
	{"user.overlay.", false, false, false, true},
	{"security.selinux", false, false, false, true},
	{"security.ima", false, false, false, true},
	{"security.capability2", false, false, false, true},
	{"system.posix_acl_", false, false, false, true},
	{"system.nfs4_acl", false, false, false, true},
	{"user", false, false, false, true},
	{"", false, false, false, true},
}

// value is one that the kernel takes for an attribute.
func value(name string) []byte {
	var words []uint32
	switch name {
	case "system.posix_acl_access", "system.posix_acl_default": // of the owner, user 1000, the group, the mask and others
		words = []uint32{2, 7<<16 | 1, ^uint32(0), 4<<16 | 2, 1000, 5<<16 | 4, ^uint32(0), 7<<16 | 0x10, ^uint32(0),
			5<<16 | 0x20, ^uint32(0)}
	case "security.capability": // CAP_NET_RAW, of version 2
		words = []uint32{0x02000001, 1 << 13, 0, 0, 0}
	default:
		return []byte("y")
	}
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// Values returns all attributes with their values.
func Values() map[string][]byte {
	all := map[string][]byte{}
	for _, a := range Attributes {
		all[a.Name] = value(a.Name)
	}
	return all
}

// Set sets those attributes of a file or directory that its file system takes, and returns them.
func Set(t *testing.T, path string) (set []Attribute) {
	t.Helper()
	dir := above(t, path)
	for _, a := range Attributes {
		if tree.SetAttribute(dir.Fd(), filepath.Base(path), a.Name, value(a.Name)) == nil {
			set = append(set, a)
		}
	}
	return set
}

// Check wants that of the attributes that could be set those are at a path that pass.
func Check(t *testing.T, path string, set []Attribute, passes func(Attribute) bool) {
	t.Helper()
	attrs, err := tree.Attributes(above(t, path).Fd(), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	Same(t, path, attrs, set, passes)
}

// above opens the directory that a path is in.
func above(t *testing.T, path string) *tree.Root {
	t.Helper()
	dir, err := tree.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

// Same wants that those are among some attributes that pass, and no others.
func Same(t *testing.T, what string, attrs map[string][]byte, of []Attribute, passes func(Attribute) bool) {
	t.Helper()
	var want []string
	for _, a := range of {
		if passes(a) {
			want = append(want, a.Name)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(attrs)); !slices.Equal(got, want) {
		t.Errorf("%s has the attributes %q, and not %q", what, got, want)
	}
}
