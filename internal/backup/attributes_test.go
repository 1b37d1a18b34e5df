package backup

import (
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/backup/vault"
	"orrery/internal/treesync"
	"orrery/internal/treesync/treesynctest"
)

// TestAttributes: a backup has all attributes that have a meaning on other machines. Those that are
// content are restored, and the others are named.
func TestAttributes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	set := treesynctest.Set(t, filepath.Join(dir, "f"))
	entries, err := (&walk{ctx: t.Context(), source: &Source{Dir: dir}, saw: func(int64) {}}).run()
	if err != nil {
		t.Fatal(err)
	}
	treesynctest.Same(t, "the backup", entries[1].Attrs, set, func(a treesynctest.Attribute) bool { return a.Lasting })
	for shut, passes := range map[bool]func(treesynctest.Attribute) bool{
		true:  func(a treesynctest.Attribute) bool { return a.Carried },
		false: func(a treesynctest.Attribute) bool { return a.Open },
	} {
		lacks := map[string][]byte{}
		l := &treeStager{shut: shut, lacks: func(what string) { lacks[what] = nil }}
		e := &vault.Entry{Entry: treesync.Entry{Attrs: treesynctest.Values()}}
		treesynctest.Same(t, "what comes back", e.Header(l.policy(e)).Attrs, treesynctest.Attributes, passes)
		treesynctest.Same(t, "what is lacking", lacks, treesynctest.Attributes,
			func(a treesynctest.Attribute) bool { return !passes(a) })
	}
}
