package vault

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// FuzzIndex: an index and a block may list arbitrary pieces.
func FuzzIndex(f *testing.F) {
	block := encodeBlock(nil, []piece{{digestOf([]byte("text")), 4}}, []byte("text"))
	f.Add(block)
	f.Add(slices.Concat(make([]byte, len(Digest{})), []byte{1, 0, 0, 0}, make([]byte, len(Digest{})), []byte{4, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := blocksOf(bytes.NewReader(text))
		if err == nil {
			x := newIndex()
			for block, pieces := range all {
				wanted(t, x.add(block, pieces))
			}
		}
		if content, err := contentOf(text); err == nil && len(content) > maxContentBytes {
			t.Errorf("%d bytes", len(content))
		}
	})
}

// FuzzSecrets: decrypted secrets may have arbitrary paths.
func FuzzSecrets(f *testing.F) {
	f.Add("secrets/token")
	f.Add("keys/n/../../x")
	f.Fuzz(func(t *testing.T, path string) {
		if isSecret(path) && (strings.Contains(path, "..") && strings.Contains(filepath.Clean("/"+path), "..") ||
			filepath.Clean("/" + path)[1:] != path || len(path) > 300) {
			t.Errorf("%q is one", path)
		}
	})
}

// TestIndexOfStrangers: a crafted index lists nothing that does not exist, whatever numbers it
// contains.
func TestIndexOfStrangers(t *testing.T) {
	one := make([]byte, pieceLine)
	binary.LittleEndian.PutUint32(one[len(Digest{}):], 7)
	head := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(make([]byte, len(Digest{})), n) }
	for name, text := range map[string][]byte{
		"10^9 pieces":     head(1e9),
		"more than 2^31":  head(1<<32 - 1),
		"cut short":       append(head(2), one...),
		"the same twice":  slices.Concat(head(2), one, one),
		"a piece of none": slices.Concat(head(1), make([]byte, pieceLine)),
		"half a head":     make([]byte, 7),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := blocksOf(bytes.NewReader(text))
		runtime.ReadMemStats(&after)
		if all := after.TotalAlloc - before.TotalAlloc; all > 1<<20 {
			t.Errorf("%s: it took %d MiB of memory", name, all>>20)
		}
		if err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestSecretsOfStrangers: only paths of secrets are accepted.
func TestSecretsOfStrangers(t *testing.T) {
	for path, want := range map[string]bool{
		"secrets/token": true, "secrets/token@n1": true, "keys/authority.pem": true, "secrets/token@": false,
		"secrets/token@N": false, "secrets/token@n1@n2": false, "secrets/@n1": false, "secrets/a@../b": false,
		"keys/n1/ssh_host_ed25519_key": true, "keys/n1/ssh_host_ed25519_key.pub": true,
		"keys/known_hosts": true,
		"secrets/../../x":  false, "secrets/a/b": false, "secrets/.x": false, "keys/../n1/ssh_host_x": false,
		"keys/n1/authorized_keys": false, "x": false,
		"secrets/": false, "keys/N/ssh_host_x": false, "secrets/a\nb": false,
	} {
		if isSecret(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
}

func TestListRefusesWhatLeadsOut(t *testing.T) {
	for _, name := range []string{"/etc", "..", "../x", "a/../../x", "", "a//b", "a/./b"} {
		list := strings.NewReader(fmt.Sprintf(`{"p":%q,"m":33188,"u":0,"g":0,"t":0}`, name))
		if eachEntry(list, func(*Entry) error { return nil }) == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

// TestBegun: what a run leaves that is killed while it creates the repository, or writes to it, is
// removed by the next run.
func TestBegun(t *testing.T) {
	dir := t.TempDir()
	left := []string{"." + markName + "123456"}
	for range 2 { // first it is not a repository yet, and then it is
		for _, name := range left {
			wanted(t, os.WriteFile(filepath.Join(dir, name), []byte("orr"), 0o600))
		}
		w, err := WriteRepository(dir)
		wanted(t, err)
		wanted(t, w.Close())
		for _, name := range left {
			if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", name, err)
			}
		}
		left = append(left, "backups/.orrery-5WTFGFFTFPAV", "index/.orrery-5WTFGFFTFPAV", "new/.orrery-5WTFGFFTFPAV")
	}
}

func wanted(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
