package ferry

import (
	"crypto/sha256"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/backup/vault"
	"orrery/internal/problem"
	"orrery/internal/treesync"
)

// TestHostileSearch: a host may send only what was requested, and once. It is not asked for the
// data of other hosts.
func TestHostileSearch(t *testing.T) {
	wanted := vault.Digest(sha256.Sum256([]byte("text")))
	searched := func(give func(h hostile)) error {
		into, err := vault.Write(filepath.Join(t.TempDir(), "backups") + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer into.Close() //nolint:errcheck // of a test
		pack := vault.NewPacker(into)
		s := &Search{Host: "sv2", Trees: map[string][]vault.Entry{"private/7": nil},
			Wanted: map[vault.Digest]bool{wanted: true}}
		err = treesync.Pipe(t.Context(), func(way io.ReadWriter) error { return s.Run(t.Context(), pack, way) },
			func(way io.ReadWriter) error {
				h := hostile{newMessageConn(way), t}
				for kind := byte(0); kind != msgStart; {
					var content []byte
					var err error
					if kind, content, err = h.recv(); err != nil {
						return err
					}
					if kind == msgWanted && string(content) != string(wanted[:]) {
						t.Errorf("wanted is %x", content)
					}
				}
				give(h)
				return nil
			})
		if wrong := pack.Close(); wrong != nil {
			t.Fatal(wrong)
		}
		if found := pack.Has(wanted); found != (err == nil) && err == nil {
			t.Error("what came is not there")
		}
		return err
	}
	for what, give := range map[string]func(h hostile){
		"something else":       func(h hostile) { h.block("rubbish") },
		"the same twice":       func(h hostile) { h.block("text"); h.block("text") },
		"a block that is none": func(h hostile) { h.must(h.sendMessage(msgBlock, []byte("text"))) },
		"a tree":               func(h hostile) { h.must(h.sendJSON(msgTree, private())) },
	} {
		if err := searched(give); problem.ExitCode(err) != int(problem.Surprise) || !strings.Contains(err.Error(), "sv2") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := searched(func(h hostile) { h.block("text"); h.must(h.sendMessage(msgDone, nil)) }); err != nil {
		t.Error(err)
	}
}
