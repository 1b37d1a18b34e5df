package ferry

import (
	"errors"
	"io"
	"testing"

	"orrery/internal/backup/vault"
	"orrery/internal/treesync"
)

// TestHostileLaying: a host gets only its own trees, each once, and layers only if the user trusts
// them.
func TestHostileLaying(t *testing.T) {
	b := newBound(t)
	b.add("sv1", kept(node("a", 1)), "nodes")
	s, err := b.shelf(map[string]string{"a": "sv1"})
	if err != nil {
		t.Fatal(err)
	}
	lot, err := s.Of("sv1")
	if err != nil {
		t.Fatal(err)
	}
	layer := lot.Trees[0] // its list is enough
	layer.Name, layer.Kind, layer.Layer = "layer/abc", vault.LayerTree, "abc"
	sent := func(trust bool, asks ...string) error {
		p := &RestorePart{Manifest: &vault.Manifest{Key: "karoo", Trees: []vault.Tree{lot.Trees[0], layer}}, Trust: trust}
		return treesync.Pipe(t.Context(), func(way io.ReadWriter) error {
			_, err := SendRestore(t.Context(), p, lot, func(int64) {}, way)
			return err
		}, func(way io.ReadWriter) error {
			h := hostile{newMessageConn(way), t}
			var p RestorePart
			h.must(h.recvJSON(msgRestorePart, &p))
			for _, name := range asks {
				h.must(h.sendMessage(msgTreeRequest, []byte(name)))
				for kind := byte(0); kind != msgEnd; {
					var err error
					if kind, _, err = h.recv(); err != nil {
						return nil
					}
				}
			}
			h.must(h.sendJSON(msgDone, StageReport{}))
			return nil
		})
	}
	for what, asks := range map[string][]string{
		"a layer that is not trusted": {"layer/abc"}, "a tree twice": {"snapshot/x", "snapshot/x"},
		"what another host kept": {"snapshot/x/sv2"}, "the site": {"site"},
	} {
		if err := sent(false, asks...); !errors.Is(err, errUnexpected) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := sent(false, "snapshot/x"); err != nil {
		t.Error(err)
	}
	if err := sent(true, "snapshot/x", "layer/abc"); err != nil {
		t.Error(err)
	}
}
