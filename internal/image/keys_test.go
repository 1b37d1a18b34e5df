package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/distro"
)

func TestKeys(t *testing.T) {
	debian := "/usr/share/keyrings/debian-archive-keyring.gpg"
	got := []distro.Source{{Suite: "a", Key: debian}, {Suite: "b", Key: debian}, {Suite: "c", Key: "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabcd\n-----END PGP PUBLIC KEY BLOCK-----"}}
	tree, keys := t.TempDir(), filepath.Join(t.TempDir(), "keys")
	mkdir(t, tree, "usr/share/keyrings")
	os.WriteFile(tree+"/usr/share/keyrings/debian-archive-keyring.gpg", nil, 0o644)
	mkdir(t, tree, "etc/apt/sources.list.d")
	placed, err := placeKeys(got, keys)
	if err != nil || !strings.Contains(distro.ListOf(placed[2:]), "[signed-by="+keys+"/orrery-2.asc]") {
		t.Errorf("%v, %v", placed, err)
	}
	if err := installKeys(got, tree, distro.Debian.Packages); err != nil {
		t.Fatal(err)
	}
	list, _ := os.ReadFile(tree + "/etc/apt/sources.list")
	if !strings.Contains(string(list), "signed-by=/etc/apt/keyrings/orrery-2.asc]") {
		t.Errorf("sources.list:\n%s", list)
	}
	if key, _ := os.ReadFile(tree + "/etc/apt/keyrings/orrery-2.asc"); !strings.HasPrefix(string(key), "-----BEGIN") {
		t.Error("the key is not in the tree")
	}
}
