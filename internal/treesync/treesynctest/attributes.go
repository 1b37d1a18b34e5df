// Package treesynctest has the test cases that every transfer of trees between hosts must pass.
//
// It is a package of its own because tests of several packages use it.
package treesynctest

import (
	"encoding/binary"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"orrery/internal/tree"
)

// An Attribute is an extended attribute, and which transfers preserve it.
type Attribute struct {
	Name     string
	Carried  bool // between hosts, and restored from a backup
	Open     bool // restored from a backup to a place that users of the host can reach
	Imported bool // extracted from an archive
	Lasting  bool // in a backup and in the digest of a layer
}

// Attributes has an attribute of each kind, and names that are almost of a kind.
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

// value returns a value that the kernel accepts for an attribute.
func value(name string) []byte {
	var words []uint32
	switch name {
	// for the owner, user 1000, the group, the mask and others
	case "system.posix_acl_access", "system.posix_acl_default":
		words = []uint32{2, 7<<16 | 1, ^uint32(0), 4<<16 | 2, 1000, 5<<16 | 4, ^uint32(0), 7<<16 | 0x10, ^uint32(0),
			5<<16 | 0x20, ^uint32(0)}
	case "security.capability": // CAP_NET_RAW, version 2
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

// Set sets all attributes that the file system of a file or directory supports, and returns them.
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

// Check fails the test unless path has exactly those of the attributes set that pass.
func Check(t *testing.T, path string, set []Attribute, passes func(Attribute) bool) {
	t.Helper()
	attrs, err := tree.Attributes(above(t, path).Fd(), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	Same(t, path, attrs, set, passes)
}

// above opens the parent directory of a path.
func above(t *testing.T, path string) *tree.Root {
	t.Helper()
	dir, err := tree.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

// Same fails the test unless attrs has exactly those of the attributes that pass.
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
