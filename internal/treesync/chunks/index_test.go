package chunks

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/treesync"
	"orrery/internal/treesync/treesynctest"
)

// TestAttributes: an index has only attributes that are content of a layer. An index with others is
// rejected.
func TestAttributes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	set := treesynctest.Set(t, filepath.Join(dir, "f"))
	x, err := NewIndex(t.Context(), dir, map[string]string{"/f": digestOf(nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	treesynctest.Same(t, "the index", x.Entries[1].Attrs, set, func(a treesynctest.Attribute) bool { return a.Carried })
	for _, a := range treesynctest.Attributes {
		var b bytes.Buffer
		x.Entries[1] = Entry{Entry: treesync.Entry{Name: "f", Mode: unix.S_IFLNK | 0o777, Attrs: treesync.Attrs{a.Name: nil}}}
		if err := x.Pack(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadIndex(&b, 65536); (err == nil) != a.Carried || err != nil &&
			!strings.Contains(err.Error(), "is not allowed") {
			t.Errorf("%q: %v", a.Name, err)
		}
	}
}
