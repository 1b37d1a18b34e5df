package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/test/need"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestInside: binds in the root of a node are mounted, in directories that belong to the node's
// root, even one inside another. Where the node has created a link or a file, wherever it leads,
// nothing is mounted or created.
//
// Promise (Virtual machines): No link in a guest's root leads a volume or disk elsewhere. With
// tree.TestMakeDown, engine/disk.TestMakeWhereLinksAre.
func TestInside(t *testing.T) {
	need.Integration(t)
	const first = 1_900_065_536
	for name, ids := range map[string]IDs{"with the ids of the host": {},
		"with ids of its own": {First: first, Size: 65536}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			for _, d := range []string{"lower/etc", "private/upper/srv", "private/work", "rootfs", "etc", "data/sub", "in",
				"outside/in"} {
				must(t, os.MkdirAll(at(d), 0o755))
			}
			must(t, os.WriteFile(at("etc/hosts"), []byte("x"), 0o644))
			must(t, os.WriteFile(at("in/file"), nil, 0o644))
			o := &Overlay{Lower: []string{at("lower")}, Upper: at("private/upper"), Work: at("private/work"),
				Target: at("rootfs"), IDs: ids}
			o.Inside = []Bind{
				{at("etc"), "/etc/orrery", true}, {at("data"), "/srv/new/data", false}, {at("in"), "/srv/new/data/in", false},
			}
			must(t, o.WithMounted(func() error {
				root := at("rootfs")
				var st unix.Stat_t
				must(t, unix.Stat(root+"/srv/new", &st))
				if int(st.Uid) != ids.First || int(st.Gid) != ids.First || st.Mode&0o7777 != 0o755 {
					t.Errorf("a directory that was made is %d:%d's, mode %o", st.Uid, st.Gid, st.Mode)
				}
				if _, err := os.Stat(root + "/srv/new/data/in/file"); err != nil {
					t.Error(err)
				}
				must(t, unix.Stat(root+"/srv/new/data/sub", &st))
				if int(st.Uid) != ids.First {
					t.Errorf("what is in a volume is %d's", st.Uid)
				}
				if err := os.WriteFile(root+"/etc/orrery/hosts", nil, 0o644); !errors.Is(err, unix.EROFS) {
					t.Errorf("/etc/orrery is written: %v", err)
				}
				return os.WriteFile(root+"/srv/new/data/written", nil, 0o644)
			}))
			if _, err := os.Stat(at("data/written")); err != nil {
				t.Error(err)
			}
			var st unix.Stat_t
			must(t, unix.Stat(at("private/upper/srv/new"), &st))
			if st.Uid != 0 || st.Gid != 0 {
				t.Errorf("on disk, what was made is %d:%d's", st.Uid, st.Gid)
			}
			if inside, err := os.ReadDir(at("private/upper/srv/new/data")); err != nil || len(inside) > 0 {
				t.Errorf("what is seen has been copied: %v, %v", inside, err)
			}

			links := map[string]string{"absolute": at("outside"), "up": "../../../outside", "inside": "srv",
				"proc": "/proc/self/root", "dangling": "/nowhere"}
			for link, to := range links {
				must(t, os.Symlink(to, at("private/upper/"+link)))
			}
			must(t, os.WriteFile(at("private/upper/file"), nil, 0o644))
			must(t, os.Symlink(at("outside"), at("data/link")))
			for _, path := range []string{"/absolute", "/absolute/in", "/absolute/made", "/up/in", "/inside", "/inside/made",
				"/proc/etc", "/dangling", "/dangling/x", "/file", "/file/x", "/srv/new/data/link/in"} {
				o.Inside = []Bind{{at("data"), "/srv/new/data", false}, {at("in"), path, false}}
				err := o.WithMounted(func() error { t.Errorf("%s was mounted", path); return nil })
				if err == nil || !strings.Contains(err.Error(), path+" of the node") {
					t.Errorf("%s: %v", path, err)
				}
			}
			for _, made := range []string{"outside/made", "private/upper/srv/made", "outside/in/file"} {
				if _, err := os.Lstat(at(made)); err == nil {
					t.Errorf("%s was made", made)
				}
			}
		})
	}
}
