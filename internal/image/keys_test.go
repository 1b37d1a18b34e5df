package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/site/distro"
)

// TestKeys: a scratch finds the keys of its sources beside their list, and a node finds them in its
// tree.
func TestKeys(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.gpg")
	must(t, os.WriteFile(own, []byte("binary"), 0o644))
	const armoured = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabcd\n-----END PGP PUBLIC KEY BLOCK-----"
	got := []distro.Source{{Suite: "a", Key: own}, {Suite: "b", Key: own}, {Suite: "c", Key: armoured}}
	tree, room := t.TempDir(), t.TempDir()
	mkdir(t, room, "keys")
	mkdir(t, tree, "etc/apt/sources.list.d")
	placed, err := writeSources(got, distro.Debian.Packages.Trusted, room)
	if err != nil || !strings.Contains(placed, "[signed-by=/run/orrery-build/keys/orrery-2.asc]  c") {
		t.Errorf("%v, %v", placed, err)
	}
	if key, _ := os.ReadFile(room + "/keys/orrery-2.asc"); string(key) != armoured+"\n" {
		t.Errorf("the scratch has the key %q", key)
	}
	if err := installKeys(got, tree, distro.Debian.Packages); err != nil {
		t.Fatal(err)
	}
	list, _ := os.ReadFile(tree + "/etc/apt/sources.list")
	if !strings.Contains(string(list), "signed-by="+own+"]") ||
		!strings.Contains(string(list), "signed-by=/etc/apt/keyrings/orrery-2.asc]") {
		t.Errorf("sources.list:\n%s", list)
	}
	for file, want := range map[string]string{own: "binary", "/etc/apt/keyrings/orrery-2.asc": armoured + "\n"} {
		if key, _ := os.ReadFile(tree + file); string(key) != want {
			t.Errorf("in the tree, %s has %q", file, key)
		}
	}
}
