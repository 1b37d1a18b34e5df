package ferry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/site/secretspec"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/text/sanitize"
)

// A BackupReceiver stores what a host sends in a vault. The host is not trusted. If it sends something
// invalid, the transfer ends, and no backup refers to what was sent.
type BackupReceiver struct {
	Host    string // or "" for the only host, which the backup does not name
	Site    *site.Site
	Request Request
	Into    *backup.MultiHostBackup
	Barrier Barrier

	Nodes   []nodedir.Record
	Left    []string
	Layers  []image.Record
	Sent    map[string]bool // the layers that this host has sent
	Secrets vault.Secrets

	conn  *messageConn
	mutex sync.Mutex
	given map[vault.Digest]bool // pieces that the host has sent, and may name
	trees int

	shared int               // how often the host has reported its layers
	gives  map[string]string // content digests of the layers that the host must send
}

const (
	maxTrees = 100_000
	maxLeft  = 10_000
)

// Run receives everything that the host sends.
func (t *BackupReceiver) Run(ctx context.Context, way io.ReadWriter) error {
	t.conn, t.given, t.Secrets = newMessageConn(way), map[vault.Digest]bool{}, vault.Secrets{}
	t.Sent, t.gives = map[string]bool{}, map[string]string{}
	setDirect(way, t)
	err := t.sendRequest()
	for err == nil {
		var kind byte
		var content []byte
		if kind, content, err = t.conn.recv(); err != nil {
			break
		}
		if kind == msgDone {
			return t.check()
		}
		err = t.handle(ctx, kind, content)
	}
	return explainFailure(ctx, t.Host, err)
}

// Add stores a piece from a host in this process.
func (t *BackupReceiver) Add(content []byte) (vault.Digest, error) {
	d, err := t.Into.Add(content)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.given[d] = true
	return d, err
}

// explainFailure returns the reason why a host has not sent what was requested: an error of the host or of
// the connection, or invalid data.
func explainFailure(ctx context.Context, host string, err error) error {
	var p *problem.Problem
	if errors.As(err, &p) || ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return protocolProblem(host, err)
}

// protocolProblem returns the problem for a host that sends invalid data.
func protocolProblem(host string, err error) error {
	return problem.New(problem.Surprise, "host %s sent invalid backup data", host).Because(err).
		Try("look at that host; --without %s leaves it out", host)
}

// sendRequest sends the order, and the lists of the last backup.
func (t *BackupReceiver) sendRequest() error {
	if err := t.conn.sendJSON(msgRequest, t.Request); err != nil {
		return err
	}
	for name, entries := range t.Into.Former(t.Host) {
		name, wanted := t.formerName(name)
		if !wanted {
			continue
		}
		if err := t.conn.sendMessage(msgTree, []byte(name)); err != nil {
			return err
		}
		if err := t.conn.sendList(entries); err != nil {
			return err
		}
		for i := range entries {
			for _, x := range entries[i].Data {
				for _, d := range x.Pieces {
					t.given[d] = true
				}
			}
		}
	}
	return t.conn.sendMessage(msgStart, nil)
}

// handle handles a message.
func (t *BackupReceiver) handle(ctx context.Context, kind byte, content []byte) error {
	switch kind {
	case msgBlock:
		return vault.Unpack(content, func(d vault.Digest, piece []byte) error {
			t.given[d] = true
			_, err := t.Into.Add(piece)
			return err
		})
	case msgStage:
		var s stage
		if err := jsonlimit.Unmarshal(content, &s); err != nil {
			return err
		}
		return t.conn.answerStage(ctx, &s, t.Barrier)
	case msgLayers:
		return t.assignLayers(ctx, content)
	case msgNodes:
		var r records
		if err := jsonlimit.Unmarshal(content, &r); err != nil {
			return err
		}
		t.Nodes, t.Layers = r.Nodes, r.Layers
		return t.recordSkipped(r.Left)
	case msgTree:
		var b treeMessage
		if err := jsonlimit.Unmarshal(content, &b); err != nil {
			return err
		}
		return t.storeTree(&b)
	case msgSecrets:
		return t.storeSecrets(content)
	}
	return errUnexpected
}

// recordSkipped records what is not in the backup.
func (t *BackupReceiver) recordSkipped(all []string) error {
	const maxTextBytes = 4096
	for _, what := range all {
		if len(t.Left) == maxLeft {
			return vault.ErrBounds
		}
		what = sanitize.Line(what[:min(len(what), maxTextBytes)])
		if t.Host != "" {
			what = "host " + t.Host + ": " + what
		}
		t.Left = append(t.Left, what)
	}
	return nil
}

// storeTree stores a tree. Its list may name only pieces that the host has sent, because the host gets
// all pieces in its lists when the site is restored.
func (t *BackupReceiver) storeTree(of *treeMessage) error {
	if t.trees++; t.trees > maxTrees {
		return vault.ErrBounds
	}
	tree := vault.Tree{Name: of.Name, Kind: of.Kind, Node: of.Node, ID: of.ID, Volume: of.Volume, Path: of.Path,
		Layer: of.Layer, Host: t.Host}
	if err := t.checkTree(&tree); err != nil {
		return err
	}
	if err := t.recordSkipped(prefixed(tree.Title()+": ", of.Lacks)); err != nil {
		return err
	}
	var text bytes.Buffer
	pack := func(least int) error {
		for text.Len() > least {
			pieces, err := t.Into.AddList(text.Next(min(text.Len(), vault.PieceSize)))
			if err != nil {
				return err
			}
			tree.List = append(tree.List, pieces...)
		}
		return nil
	}
	err := t.conn.recvList(func(e *vault.Entry) error {
		for _, x := range e.Data {
			if slices.ContainsFunc(x.Pieces, func(d vault.Digest) bool { return !t.given[d] }) {
				return errors.New("it names content that it has not sent")
			}
		}
		line, err := vault.WriteList([]vault.Entry{*e})
		if err != nil {
			return err
		}
		text.Write(line)
		tree.Entries++
		tree.Bytes += e.Size
		return pack(vault.PieceSize)
	})
	if err == nil {
		err = pack(0)
	}
	if err == nil {
		t.Into.Tree(tree)
	}
	return err
}

func prefixed(with string, all []string) (texts []string) {
	for _, text := range all {
		texts = append(texts, with+text)
	}
	return texts
}

// checkTree returns an error for a tree that the host cannot have: that of a node that it does not
// send, or a volume in another directory than the site file says.
func (t *BackupReceiver) checkTree(tree *vault.Tree) error {
	switch tree.Kind {
	case vault.PrivateTree:
		if !slices.ContainsFunc(t.Nodes, func(n nodedir.Record) bool { return n.ID == tree.ID && n.Name == tree.Node }) {
			return errUnexpected
		}
		return nil
	case vault.LayerTree:
		return t.checkLayer(tree.Layer)
	case vault.SnapshotTree:
		id := strings.TrimPrefix(tree.Name, "snapshot/")
		if !t.Request.Snapshots || !check.ValidFileName(id) {
			return errUnexpected
		}
		if t.Host != "" {
			tree.Name += "/" + t.Host // others have parts of the same snapshot
		}
		return nil
	case vault.VolumeTree:
		if tree.Path != "" && t.Site.Volume(tree.Volume).Path != tree.Path {
			return problem.New(problem.Surprise, "host %s reports volume %s at %s, which the site file does not", t.Host,
				sanitize.Line(tree.Volume), sanitize.Line(tree.Path)).
				Try("orrery up applies the site file; --without %s leaves the host out", t.Host)
		}
		return nil
	}
	return errUnexpected
}

// storeSecrets stores generated secrets and the host keys of nodes.
func (t *BackupReceiver) storeSecrets(content []byte) error {
	var all vault.Secrets
	if err := jsonlimit.Unmarshal(content, &all); err != nil {
		return err
	}
	for path, value := range all {
		if !belongsToNodes(t.Nodes, path) {
			return errUnexpected
		}
		t.Secrets[path] = value
	}
	return nil
}

// check returns an error if the records are invalid.
func (t *BackupReceiver) check() error {
	m := vault.Manifest{Format: vault.Format, Site: t.Site.Name, Key: t.Site.Key(), Twin: t.Site.Twin, Nodes: t.Nodes,
		Layers: t.Layers, Left: t.Left}
	if err := m.Check(); err != nil {
		return protocolProblem(t.Host, err)
	}
	if err := t.checkLayerReports(); err != nil {
		return protocolProblem(t.Host, err)
	}
	return nil
}

// formerName returns the host's name of a tree of the last backup, and whether the order includes such
// trees.
func (t *BackupReceiver) formerName(name string) (known string, wanted bool) {
	switch kind, _, _ := strings.Cut(name, "/"); kind {
	case vault.LayerTree:
		return name, t.Request.Layers
	case vault.SnapshotTree:
		return nameOnHost(name, t.Host), t.Request.Snapshots
	}
	return name, true
}

// nameOnHost returns the host's name of a tree that it sent. In the backup, the name of a snapshot
// ends with the name of the host.
func nameOnHost(name, host string) string {
	if strings.HasPrefix(name, "snapshot/") {
		return strings.TrimSuffix(name, "/"+host)
	}
	return name
}

// nodeOfKey returns the node whose host key, or own value of a secret, has this path.
func nodeOfKey(path string) (node string, ok bool) {
	if stored, secret := strings.CutPrefix(path, "secrets/"); secret {
		_, node = secretspec.Split(stored)
		return node, node != ""
	}
	rest, ok := strings.CutPrefix(path, "keys/")
	node, _, deeper := strings.Cut(rest, "/")
	return node, ok && deeper
}
