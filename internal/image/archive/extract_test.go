package archive

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/treesync/treesynctest"
)

// TestAttributes: attributes of an archive are kept if they are content, but not if they control an
// overlay of the host.
func TestAttributes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("most attributes need root")
	}
	dir := t.TempDir()
	try := filepath.Join(dir, "try")
	if err := os.WriteFile(try, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	set := treesynctest.Set(t, try)
	x, err := newExtractor(filepath.Join(dir, "tree"), true, &bounds{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	h := &tar.Header{Name: "f", Typeflag: tar.TypeReg, Mode: 0o644, PAXRecords: map[string]string{}}
	for name, value := range treesynctest.Values() {
		if name != "system.posix_acl_default" { // only directories have it
			h.PAXRecords["SCHILY.xattr."+name] = string(value)
		}
	}
	if err := x.entry(h, bytes.NewReader(nil)); err != nil {
		t.Fatal(err)
	}
	treesynctest.Check(t, filepath.Join(dir, "tree", "f"), set, func(a treesynctest.Attribute) bool { return a.Imported })
}
