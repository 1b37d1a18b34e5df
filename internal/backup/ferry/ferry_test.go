package ferry

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/snapshot"
	"orrery/internal/treesync"
)

// others is a layer that another host sends.
const others = "0123"

// alone is the pace of a host that waits for no other.
type alone struct{}

func (alone) Read(context.Context) error  { return nil }
func (alone) Ready(context.Context) error { return nil }
func (alone) Layers(_ context.Context, held map[string]string) (give []string, err error) {
	for digest := range held {
		if digest != others {
			give = append(give, digest)
		}
	}
	return give, nil
}
func (alone) Copied(context.Context) (time.Time, error) { return time.Time{}, nil }
func (alone) Stood(context.Context, engine.Pause) error { return nil }
func (alone) Went(context.Context, engine.Pause) (snapshot.All, error) {
	return snapshot.All{}, nil
}

// hostile is a host that sends arbitrary messages.
type hostile struct {
	*messageConn
	t *testing.T
}

// must ignores the error, because the receiver may have given up.
func (h hostile) must(error) {}

// block sends content, and returns its digest.
func (h hostile) block(content string) vault.Digest {
	p := vault.NewPacker(vault.NewRemoteVault(func(b []byte) error { return h.sendMessage(msgBlock, b) }))
	d, err := p.Add([]byte(content))
	h.must(err)
	h.must(p.Close())
	return d
}

// node sends the record of a node that the host may have.
func (h hostile) node() {
	digest := strings.Repeat("0", 24)
	h.must(h.sendJSON(msgNodes, records{Nodes: []nodedir.Record{{Node: spec.Node{Name: "a", ID: 7, Base: digest}}},
		Left: []string{"a\x1b[2J"}, Layers: []image.Record{{Digest: "abc", Content: "c0de"}}}))
}

// layers reports the layers of a host, and receives the list of those that it must send.
func (h hostile) layers(held map[string]string) {
	h.must(h.sendJSON(msgLayers, held))
	var give []string
	h.must(h.recvJSON(msgLayers, &give))
}

// layer sends a layer.
func (h hostile) layer(digest string, d vault.Digest) {
	h.must(h.sendJSON(msgTree, treeMessage{Tree: vault.Tree{Name: "layer/" + digest, Kind: vault.LayerTree,
		Layer: digest}}))
	h.must(h.sendList(files(d)))
}

func shelved(id string) treeMessage {
	return treeMessage{Tree: vault.Tree{Name: "snapshot/" + id, Kind: vault.SnapshotTree}}
}

func private() treeMessage {
	return treeMessage{Tree: vault.Tree{Name: "private/7", Kind: vault.PrivateTree, Node: "a", ID: 7}}
}

func files(d vault.Digest) []vault.Entry {
	return []vault.Entry{
		{Entry: treesync.Entry{Name: ".", Mode: 0o40755}},
		{Entry: treesync.Entry{Name: "f", Mode: 0o100644, Size: 4},
			Data: []vault.Extent{{Size: 4, Pieces: []vault.Digest{d}}}},
	}
}

// taken makes a host send something, and returns the result.
func taken(t *testing.T, give func(h hostile)) (*BackupReceiver, error) {
	t.Helper()
	into, err := vault.Write(filepath.Join(t.TempDir(), "backups") + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close() //nolint:errcheck // of a test
	s := &site.Site{Name: "karoo", Volumes: []site.Volume{{Name: "data", Path: "/srv/data"}}}
	b, err := (&backup.Backup{Selection: &backup.Selection{Site: s}, Into: into, Saw: func(int64) {}}).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	take := &BackupReceiver{Host: "sv2", Site: s, Request: Request{Layers: true, Snapshots: true},
		Into: b, Barrier: alone{}}
	err = treesync.Pipe(t.Context(), func(way io.ReadWriter) error { return take.Run(t.Context(), way) },
		func(way io.ReadWriter) error {
			h := hostile{newMessageConn(way), t}
			for kind := byte(0); kind != msgStart; {
				var err error
				if kind, _, err = h.recv(); err != nil {
					t.Error(err)
					return err
				}
			}
			give(h)
			return nil
		})
	_, _ = b.Finish(t.Context(), errors.New("it was tried"))
	return take, err
}

// TestHostileHost: if a host sends something that it cannot have, the backup ends with an error
// that names the host.
func TestHostileHost(t *testing.T) {
	other := sha256.Sum256([]byte("of another host"))
	for what, give := range map[string]func(hostile){
		"content that it has not given": func(h hostile) {
			h.node()
			h.must(h.sendJSON(msgTree, private()))
			h.must(h.sendList(files(other)))
		},
		"a path that leads out": func(h hostile) {
			d := h.block("text")
			h.node()
			h.must(h.sendJSON(msgTree, private()))
			all := files(d)
			all[1].Name = "../f"
			h.must(h.sendList(all))
		},
		"a node that is not its own": func(h hostile) {
			h.node()
			h.must(h.sendJSON(msgTree, treeMessage{Tree: vault.Tree{Name: "private/8", Kind: vault.PrivateTree, Node: "b",
				ID: 8}}))
		},
		"the site directory": func(h hostile) {
			h.must(h.sendJSON(msgTree, treeMessage{Tree: vault.Tree{Name: "site", Kind: vault.SiteTree}}))
		},
		"a volume where none is": func(h hostile) {
			h.must(h.sendJSON(msgTree, treeMessage{Tree: vault.Tree{Name: "volume/data", Kind: vault.VolumeTree, Volume: "data",
				Path: "/etc"}}))
		},
		"a block that is none": func(h hostile) { h.must(h.sendMessage(msgBlock, []byte("rubbish"))) },
		"a block of any size":  func(h hostile) { h.must(h.sendMessage(msgBlock, make([]byte, vault.MaxSentBytes+1))) },
		"secrets of others": func(h hostile) {
			h.must(h.sendJSON(msgSecrets, vault.Secrets{"keys/b/ssh_host_ed25519_key": nil}))
		},
		"a secret of another node": func(h hostile) {
			h.node()
			h.must(h.sendJSON(msgSecrets, vault.Secrets{"secrets/key@b": nil}))
		},
		"a certificate authority": func(h hostile) {
			h.node()
			h.must(h.sendJSON(msgSecrets, vault.Secrets{vault.AuthorityPath: nil}))
		},
		"secrets that are none": func(h hostile) { h.must(h.sendJSON(msgSecrets, vault.Secrets{"../../etc/shadow": nil})) },
		"a layer of another host": func(h hostile) {
			h.layers(map[string]string{"abc": "c0de", others: "c0de"})
			h.layer(others, h.block("text"))
		},
		"a layer before it was asked for": func(h hostile) { h.layer("abc", h.block("text")) },
		"a layer twice": func(h hostile) {
			h.layers(map[string]string{"abc": "c0de"})
			d := h.block("text")
			h.layer("abc", d)
			h.layer("abc", d)
		},
		"a layer of content that it has not given": func(h hostile) {
			h.layers(map[string]string{"abc": "c0de"})
			h.layer("abc", other)
		},
		"a layer of another content than was said": func(h hostile) {
			h.layers(map[string]string{"abc": "c0de"})
			h.layer("abc", h.block("text"))
			h.must(h.sendJSON(msgNodes, records{Layers: []image.Record{{Digest: "abc", Content: "bad"}}}))
			h.must(h.sendMessage(msgDone, nil))
		},
		"a layer that is no digest": func(h hostile) { h.layers(map[string]string{"../abc": "c0de"}) },
		"layers again and again": func(h hostile) {
			for range layerRounds + 1 {
				h.layers(map[string]string{"abc": "c0de"})
			}
		},
		"a snapshot of no name":     func(h hostile) { h.must(h.sendJSON(msgTree, shelved("../../x"))) },
		"a snapshot of other hosts": func(h hostile) { h.must(h.sendJSON(msgTree, shelved("x/sv1"))) },
		"a snapshot with content that it has not given": func(h hostile) {
			h.must(h.sendJSON(msgTree, shelved("x")))
			h.must(h.sendList(files(other)))
		},
		"a message of no kind":  func(h hostile) { h.must(h.sendMessage('?', nil)) },
		"a list without a tree": func(h hostile) { h.must(h.sendMessage(msgList, []byte("{}\n"))) },
		"a node of no name": func(h hostile) {
			h.must(h.sendJSON(msgNodes, records{Nodes: []nodedir.Record{{Node: spec.Node{Name: "../a", ID: 7}}}}))
			h.must(h.sendMessage(msgDone, nil))
		},
	} {
		_, err := taken(t, give)
		if problem.ExitCode(err) != int(problem.Surprise) || !strings.Contains(err.Error(), "sv2") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := taken(t, func(hostile) {}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("nothing: %v", err)
	}
	take, err := taken(t, func(h hostile) {
		d := h.block("text")
		h.node()
		h.must(h.sendJSON(msgTree, private()))
		h.must(h.sendList(files(d)))
		h.layers(map[string]string{"abc": "c0de", others: "c0de"})
		h.layer("abc", d)
		h.must(h.sendJSON(msgTree, shelved("x")))
		h.must(h.sendList(files(d)))
		h.must(h.sendJSON(msgSecrets, vault.Secrets{"secrets/admin": []byte("x"),
			"keys/a/ssh_host_ed25519_key": []byte("y"), "secrets/key@a": []byte("z")}))
		h.must(h.sendMessage(msgDone, nil))
	})
	if err != nil || len(take.Nodes) != 1 || len(take.Secrets) != 3 || len(take.Left) != 1 ||
		strings.Contains(take.Left[0], "\x1b") {
		t.Errorf("%+v, %v", take, err)
	}
}
