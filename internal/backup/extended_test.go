package backup

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/site/sitefile"
	"orrery/internal/treesync"
)

// TestExtended: what a site has from other site directories is staged inside the site directory. A backup
// whose site directory already has something there stages nothing, wherever a link leads.
func TestExtended(t *testing.T) {
	owner := treesync.Entry{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	link, dir := owner, owner
	link.Name, link.Mode, link.Link = sitefile.KeptBase, unix.S_IFLNK|0o777, "../../beside"
	dir.Name, dir.Mode = sitefile.KeptBase, unix.S_IFDIR|0o755
	for name, c := range map[string]struct {
		entries func(f *forger) []vault.Entry
		ok      bool
	}{
		"nothing": {func(*forger) []vault.Entry { return nil }, true},
		"a link":  {func(*forger) []vault.Entry { return []vault.Entry{{Entry: link}} }, false},
		"a directory": {func(f *forger) []vault.Entry {
			return []vault.Entry{{Entry: dir}, f.file(sitefile.KeptBase+"/x", "x")}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := forgeArchive(t)
			f.tree(vault.Tree{Name: "site", Kind: vault.SiteTree}, c.entries(f)...)
			f.tree(vault.Tree{Name: vault.ExtendedTree, Kind: vault.ExtendedTree}, f.file(sitefile.Name, "x"))
			where, _ := f.done()
			v, _, err := vault.Open(where)
			must(t, err)
			defer v.Close()
			_, m, err := vault.Resolve(v, "")
			must(t, err)
			to, intact := yard(t)
			s := &SiteDir{v, m, filepath.Join(to, "site")}
			at, err := s.Stage(t.Context())
			intact()
			if !c.ok {
				if left, _ := os.ReadDir(to); err == nil || len(left) > 0 {
					t.Errorf("%v; left is %v", err, left)
				}
				return
			}
			must(t, err)
			must(t, s.Place())
			text, err := os.ReadFile(filepath.Join(s.Path, sitefile.KeptBase, sitefile.Name))
			if left, _ := os.ReadDir(to); err != nil || string(text) != "x" || len(left) != 1 {
				t.Errorf("staged at %s is %q: %v; there are %v", at, text, err, left)
			}
			must(t, s.Check(t.Context()))
		})
	}
}
