package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadMounts(t *testing.T) {
	const table = `23 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
70 44 254:0 /run/a\040b /binds/a\134b ro,relatime - ext4 /dev/vda rw,discard
71 70 0:31 /gone//deleted /x\011y rw,ro_is_no_option master:4 propagate_from:2 - btrfs none rw
`
	got, err := ReadMounts(strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	want := []MountInfo{
		{23, 1, MountSource{"254:0", "/"}, "/", false, "ext4"},
		{70, 44, MountSource{"254:0", "/run/a b"}, `/binds/a\b`, true, "ext4"},
		{71, 70, MountSource{"0:31", "/gone//deleted"}, "/x\ty", false, "btrfs"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	for _, bad := range []string{"1 2 3\n", "x 1 254:0 / / rw - ext4 x rw\n"} {
		if _, err := ReadMounts(strings.NewReader(bad)); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestOriginHolds(t *testing.T) {
	for _, c := range []struct {
		outer, inner MountSource
		want         bool
	}{
		{MountSource{"1:1", "/a"}, MountSource{"1:1", "/a"}, true},
		{MountSource{"1:1", "/a"}, MountSource{"1:1", "/a/b"}, true},
		{MountSource{"1:1", "/"}, MountSource{"1:1", "/a"}, true},
		{MountSource{"1:1", "/a"}, MountSource{"1:1", "/ab"}, false},
		{MountSource{"1:1", "/a/b"}, MountSource{"1:1", "/a"}, false},
		{MountSource{"1:1", "/a"}, MountSource{"1:2", "/a"}, false},
	} {
		if got := c.outer.Contains(c.inner); got != c.want {
			t.Errorf("%v holds %v: %t", c.outer, c.inner, got)
		}
	}
}

// TestOriginsOf: the origin of a directory does not depend on the path to it.
func TestOriginsOf(t *testing.T) {
	dir := t.TempDir()
	inside, link := filepath.Join(dir, "real/inside"), filepath.Join(dir, "link")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	all, err := MountSourcesOf(filepath.Join(dir, "real"), inside, filepath.Join(link, "inside"))
	if err != nil {
		t.Fatal(err)
	}
	if all[1] != all[2] || all[0] == all[1] || !all[0].Contains(all[1]) {
		t.Errorf("origins: %+v", all)
	}
	if _, err := MountSourcesOf(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("of a directory that is not there: %v", err)
	}
}
