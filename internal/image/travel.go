package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
	"orrery/internal/treesync/chunks"
)

// ContentInfo is what a host states about a layer in its store.
type ContentInfo struct {
	Content string `json:"content"` // digest of the layer's content
	Size    int64  `json:"size"`
}

// ContentInfo returns the digest and size of a layer's content, or fs.ErrNotExist if the store does not
// have the layer.
func (s *Store) ContentInfo(digest string) (ContentInfo, error) {
	if !IsDigest(digest) || !s.has(digest) {
		return ContentInfo{}, fs.ErrNotExist
	}
	r, err := s.PortableRecord(digest)
	if err != nil {
		return ContentInfo{}, broken(s, digest, err)
	}
	return ContentInfo{r.Content, r.Size}, nil
}

// incomingLayers are the layers that are being received, by their paths. Other hosts can already get the
// parts that have arrived.
var incomingLayers = struct {
	sync.Mutex
	all map[string]*incomingLayer
}{all: map[string]*incomingLayer{}}

type incomingLayer struct {
	begun chan struct{} // closed when the index has arrived
	r     *chunks.Download
	over  chan struct{}
}

// announceIncoming lets other hosts wait for a layer that is being received.
func announceIncoming(at string) (a *incomingLayer, forget func()) {
	a = &incomingLayer{begun: make(chan struct{}), over: make(chan struct{})}
	incomingLayers.Lock()
	defer incomingLayers.Unlock()
	incomingLayers.all[at] = a
	return a, func() {
		incomingLayers.Lock()
		defer incomingLayers.Unlock()
		if incomingLayers.all[at] == a {
			delete(incomingLayers.all, at)
		}
		close(a.over)
		if a.r != nil {
			a.r.Stop()
		}
	}
}

// Serve sends what another host requests of a layer, until it requests no more. A layer that is
// still being received is sent as it arrives.
func (s *Store) Serve(ctx context.Context, digest string, c io.ReadWriter) error {
	if !IsDigest(digest) {
		return problem.New(problem.Failed, "%q is not the digest of a layer", digest)
	}
	g := &chunkServer{store: s, digest: digest}
	defer g.close()
	incomingLayers.Lock()
	g.comes = incomingLayers.all[filepath.Join(s.Dir, digest)]
	incomingLayers.Unlock()
	return chunks.Serve(ctx, g, c)
}

// chunkServer is a layer that is being sent.
type chunkServer struct {
	store  *Store
	digest string
	comes  *incomingLayer // nil if the layer is in the store, or nowhere
	held   *host.Lock
	root   *tree.Root
	paths  map[string]string // by the digests of the files
}

func (g *chunkServer) close() {
	if g.held != nil {
		g.held.Release()
	}
	if g.root != nil {
		_ = g.root.Close()
	}
}

// open opens the layer in the store and returns the digests of its files by path.
func (g *chunkServer) open(ctx context.Context) (sums map[string]string, err error) {
	if g.held == nil {
		// keep GC from removing the layer
		if g.held, err = g.store.locks.layer(ctx, g.digest, host.Shared); err != nil {
			return nil, err
		}
	}
	if !g.store.has(g.digest) {
		return nil, errors.New("the layer is not in its store")
	}
	lines, err := readManifest(filepath.Join(g.store.Dir, g.digest, "manifest.gz"))
	if err != nil {
		return nil, err
	}
	sums, g.paths = map[string]string{}, map[string]string{}
	for path, line := range lines.byPath() {
		quoted, _ := strconv.QuotedPrefix(line) //nolint:errcheck // byPath has done it
		says := strings.Fields(line[len(quoted):])
		if mode, err := strconv.ParseUint(says[0], 8, 32); err == nil && mode&unix.S_IFMT == unix.S_IFREG {
			sums[path], g.paths[says[len(says)-1]] = says[len(says)-1], path
		}
	}
	if g.root == nil {
		g.root, err = tree.Open(g.store.Tree(g.digest))
	}
	return sums, err
}

// arriving returns the download of the layer once its index is known, or nil if the layer is not
// being received.
func (g *chunkServer) arriving(ctx context.Context) (*chunks.Download, error) {
	if g.comes == nil {
		return nil, nil
	}
	select {
	case <-g.comes.over:
		g.comes = nil
		return nil, nil
	default:
	}
	select {
	case <-g.comes.begun:
		return g.comes.r, nil
	case <-time.After(chunks.WaitTimeout):
		return nil, errors.New("this host does not receive the layer")
	case <-g.comes.over:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Index returns the packed index of the layer.
func (g *chunkServer) Index(ctx context.Context) ([]byte, error) {
	if comes, err := g.arriving(ctx); err != nil {
		return nil, err
	} else if comes != nil {
		return comes.Packed(), nil
	}
	sums, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	r, err := g.store.Record(g.digest)
	if err != nil {
		return nil, err
	}
	x, err := chunks.NewIndex(ctx, g.store.Tree(g.digest), sums, r)
	if err != nil {
		return nil, err
	}
	var whole bytes.Buffer
	err = x.Pack(&whole)
	return whole.Bytes(), err
}

// Piece returns a piece of a file of the layer.
func (g *chunkServer) Piece(ctx context.Context, p chunks.Piece) ([]byte, error) {
	if comes, err := g.arriving(ctx); err != nil {
		return nil, err
	} else if comes != nil {
		content, err := comes.Piece(ctx, p)
		if err == nil || !g.store.has(g.digest) { // otherwise the layer has just been completed
			return content, err
		}
	}
	if g.paths == nil {
		if _, err := g.open(ctx); err != nil {
			return nil, err
		}
	}
	path, ok := g.paths[p.Sum]
	if !ok || p.N < 0 {
		return nil, errors.New("the piece does not belong to the layer")
	}
	f, err := g.root.OpenFile(path)
	if err != nil {
		return nil, problem.PathErrorCause(err)
	}
	defer f.Close()
	return chunks.PieceOf(f, p.N)
}

// Download fetches a layer from other hosts, unless the store has it. Content is the expected digest of
// its content. A host that sends anything else is not asked again, and is reported to doubt.
func (s *Store) Download(ctx context.Context, l *spec.Layer, content string, from []chunks.Source, say,
	doubt func(string)) error {
	begun := time.Now()
	a, forget := announceIncoming(filepath.Join(s.Dir, l.Digest))
	defer forget()
	g, err := s.stage(ctx, l)
	if g == nil {
		return err
	}
	defer g.close()
	t := &layerDownload{staging: g, arrival: a, layer: l, content: content, dir: filepath.Join(s.incoming, l.Digest),
		say:   say,
		doubt: doubt}
	for {
		liar, err := t.take(ctx, from, begun)
		if liar == "" || err == nil || ctx.Err() != nil {
			return s.disk.explain(err, minLayerSpace)
		}
		doubt(err.Error())
		from = slices.DeleteFunc(slices.Clone(from), func(s chunks.Source) bool { return s.Name == liar })
		if err := removeTree(t.dir); err != nil {
			return err
		}
	}
}

// layerDownload is a layer that is being fetched.
type layerDownload struct {
	*staging
	arrival *incomingLayer
	layer   *spec.Layer
	content string
	dir     string // directory of what has been received
	say     func(string)
	doubt   func(string)
}

// localSource is the source of what was received before an interruption.
const localSource = "this host"

// take tries to fetch the layer. If the index is wrong, it returns the name of the host that sent
// it.
func (t *layerDownload) take(ctx context.Context, from []chunks.Source, begun time.Time) (liar string, err error) {
	x, whole, whose, err := t.index(ctx, from)
	if err != nil {
		return "", problem.New(problem.Failed, "no host sends a correct copy of layer %s", t.layer.Title).Because(err)
	}
	r, err := chunks.Open(ctx, filepath.Join(t.dir, "files"), x, whole)
	if err != nil {
		return "", err
	}
	if err := r.CheckSpace(t.store.disk.importSpace()); err != nil {
		return "", t.store.disk.fullProblem(uint64(r.Missing()) + minBaseSpace/2).Because(err)
	}
	if t.arrival.r == nil {
		t.arrival.r = r
		close(t.arrival.begun)
	}
	all := r.Missing()
	if all > 0 {
		t.say("fetches " + formatSize(uint64(all)))
		came, err := r.Fetch(ctx, from, t.doubt)
		if errors.Is(err, chunks.ErrCorrupt) { // the pieces may be right, and the index wrong
			return whose, errors.Join(fmt.Errorf(
				"the received pieces of layer %s do not match the list from host %s", t.layer.Title, whose), err)
		}
		if err != nil {
			return "", problem.New(problem.Failed, "layer %s was not fetched: %s of %s are missing", t.layer.Title,
				formatSize(uint64(r.Missing())), formatSize(uint64(all))).Because(err).
				Try("run the same command again: what was received is kept")
		}
		t.say(describeSources(came, time.Since(begun)))
	}
	t.say("verifies the layer")
	tree := filepath.Join(t.staging.dir, "tree")
	if err := removeTree(tree); err != nil {
		return "", err
	}
	if err := r.Extract(ctx, tree); chunks.IsLocal(err) || ctx.Err() != nil {
		return "", err
	} else if err != nil {
		return whose, fmt.Errorf("host %s: its data of layer %s cannot be extracted: %w", whose, t.layer.Title, err)
	}
	lines, bytes, err := scan(ctx, tree, digestQuietly)
	if err != nil {
		return "", err
	}
	if lines.digest() != t.content {
		name, err := r.Mismatch(ctx)
		return whose, errors.Join(fmt.Errorf("host %s: its list of the pieces of layer %s is wrong for %s",
			whose, t.layer.Title, name), err)
	}
	record := t.record(x.Note, begun)
	record.Content, record.Size, record.Files = t.content, bytes, len(lines)
	if err := t.commit(record, lines); err != nil {
		return "", err
	}
	return "", removeTree(t.dir)
}

// index returns the index of the layer. It is the one received before an interruption or, if there
// is none, the first that a host sends.
func (t *layerDownload) index(ctx context.Context, from []chunks.Source) (x *chunks.Index, whole []byte, whose string,
	err error) {
	kept := filepath.Join(t.dir, "index.gz")
	if whole, err := os.ReadFile(kept); err == nil {
		if x, err := t.check(whole); err == nil {
			return x, whole, localSource, nil
		}
	}
	if err := removeTree(t.dir); err != nil { // it does not belong to this layer
		return nil, nil, "", err
	}
	if x, whole, whose, err = chunks.FirstIndex(ctx, from, t.check, t.doubt); err != nil {
		return nil, nil, "", err
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return nil, nil, "", err
	}
	return x, whole, whose, os.WriteFile(kept, whole, 0o600)
}

// check returns an error unless an index is that of the layer.
func (t *layerDownload) check(whole []byte) (*chunks.Index, error) {
	x, err := chunks.ReadIndex(bytes.NewReader(whole), uint32(containerIDs.Size))
	if err == nil && manifest(x.Lines()).digest() != t.content {
		err = fmt.Errorf("its list of files does not match the layer: %w", chunks.ErrCorrupt)
	}
	return x, err
}

// record returns the record of the layer for this store. What another host says about packages is
// not proven, and is only shown to the user.
func (t *layerDownload) record(note json.RawMessage, begun time.Time) *Record {
	r := newRecord(t.layer, begun)
	var says Record
	if jsonlimit.Unmarshal(note, &says) != nil {
		return r
	}
	r.Packages, r.Python = validPackageNames(says.Packages), validPackageNames(says.Python)
	if says.Seconds > 0 && says.Seconds < 1e6 {
		r.Seconds = says.Seconds // duration of the build, used to estimate the next one
	}
	if says.Built.Before(r.Built) {
		r.Built = says.Built
	}
	return r
}

// validPackageNames returns the names that could be those of packages.
func validPackageNames(said []string) []string {
	const most, maxNameLen = 100_000, 300
	if len(said) > most {
		return nil
	}
	return slices.DeleteFunc(said, func(name string) bool { return len(name) > maxNameLen || sanitize.Line(name) != name })
}

// describeSources describes how much has come from which host.
func describeSources(came map[string]int64, took time.Duration) string {
	var all []string
	for name, bytes := range came {
		all = append(all, formatSize(uint64(bytes))+" from "+name)
	}
	slices.Sort(all)
	return fmt.Sprintf("%s, in %s", strings.Join(all, ", "), took.Round(time.Millisecond))
}
