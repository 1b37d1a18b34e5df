package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/site/spec"
	"orrery/internal/treesync/chunks"
)

const (
	travels = "abcdef0123"
	some    = 123_456 // bytes of the last piece
)

// traveller returns a layer in its own store. It has small files, one of several pieces, links, and
// a directory with an unusual mode.
func traveller(t *testing.T) (*Store, *spec.Layer, string) {
	t.Helper()
	s := Open(t.TempDir())
	l := &spec.Layer{Digest: travels, Title: "debian + cam"}
	noise := rand.New(rand.NewPCG(1, 2))
	large := make([]byte, 2*chunks.PieceSize+some) // the second piece is zeros, which need not be sent
	for i := 0; i < chunks.PieceSize; i += 8 {
		binary.LittleEndian.PutUint64(large[i:], noise.Uint64())
	}
	for i := range large[2*chunks.PieceSize:] {
		large[2*chunks.PieceSize+i] = byte(noise.Uint32())
	}
	r := &Record{Digest: travels, Title: l.Title, Packages: []string{"cam=1", "bad\x1b[2J=1"}, Seconds: 7,
		Built: time.Now().Add(-time.Hour)}
	g, err := s.stage(t.Context(), l)
	must(t, err)
	defer g.close()
	at := filepath.Join(g.dir, "tree")
	must(t, os.MkdirAll(filepath.Join(at, "etc/deep"), 0o755))
	must(t, os.MkdirAll(filepath.Join(at, "usr"), 0o755))
	for i := range 40 {
		must(t, os.WriteFile(filepath.Join(at, "etc", fmt.Sprintf("file%d", i)), fmt.Appendf(nil, "the %dth", i/2), 0o644))
	}
	must(t, os.WriteFile(filepath.Join(at, "etc/deep/none"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(at, "usr/large"), large, 0o755))
	must(t, os.Symlink("/etc/file1", filepath.Join(at, "usr/link")))
	must(t, os.Link(filepath.Join(at, "etc/file3"), filepath.Join(at, "usr/same")))
	must(t, os.Chmod(filepath.Join(at, "etc/deep"), 0o750))
	old := time.Unix(1_500_000_000, 0)
	must(t, os.Chtimes(filepath.Join(at, "etc/file7"), old, old))
	lines, _, err := scan(t.Context(), at, digestQuietly)
	must(t, err)
	r.Content, r.Files = lines.digest(), len(lines)
	must(t, g.commit(r, lines))
	return s, l, r.Content
}

// via returns a source whose connections are served by give.
func via(name string, give func(ctx context.Context, c net.Conn)) chunks.Source {
	return chunks.Source{Name: name, Open: func(ctx context.Context) (net.Conn, error) {
		far, near := net.Pipe()
		go func() {
			defer far.Close()
			give(ctx, far)
		}()
		return near, nil
	}}
}

func honest(name string, s *Store, sent *counted) chunks.Source {
	return via(name, func(ctx context.Context, c net.Conn) { _ = s.Serve(ctx, travels, &counting{c, sent}) })
}

// counted counts the bytes sent, and may cut the connection.
type counted struct {
	bytes atomic.Int64
	most  int64 // bytes after which the connection is cut, or 0 for never
}

type counting struct {
	net.Conn
	to *counted
}

func (c *counting) Write(p []byte) (int, error) {
	if c.to.most > 0 && c.to.bytes.Load()+int64(len(p)) > c.to.most {
		return 0, io.ErrClosedPipe
	}
	n, err := c.Conn.Write(p)
	c.to.bytes.Add(int64(n))
	return n, err
}

// forged changes what a host sends.
type forged struct {
	chunkServer
	index func([]byte) []byte
	piece func(chunks.Piece, []byte) []byte
}

func (f *forged) Index(ctx context.Context) ([]byte, error) {
	whole, err := f.chunkServer.Index(ctx)
	if f.index != nil && err == nil {
		whole = f.index(whole)
	}
	return whole, err
}

func (f *forged) Piece(ctx context.Context, p chunks.Piece) ([]byte, error) {
	content, err := f.chunkServer.Piece(ctx, p)
	if f.piece != nil && err == nil {
		content = f.piece(p, content)
	}
	return content, err
}

func liar(name string, f *forged) chunks.Source {
	return via(name, func(ctx context.Context, c net.Conn) {
		source := *f
		defer source.close()
		_ = chunks.Serve(ctx, &source, c)
	})
}

type doubts struct{ all []string }

func (d *doubts) add(text string) { d.all = append(d.all, text) }

func quiet(string) {}

// TestTravel: a layer arrives in another store unchanged, with times and links, and nothing remains
// beside it.
func TestTravel(t *testing.T) {
	from, l, content := traveller(t)
	to := Open(t.TempDir())
	if w, err := from.ContentInfo(travels); err != nil || w.Content != content {
		t.Errorf("its word is %v: %v", w, err)
	}
	if _, err := to.ContentInfo(travels); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a layer that is not there: %v", err)
	}
	d := &doubts{}
	must(t, to.Download(t.Context(), l, content,
		[]chunks.Source{honest("sv1", from, &counted{}), honest("sv2", from, &counted{})}, quiet, d.add))
	must(t, to.Verify(t.Context(), travels))
	r, err := to.Record(travels)
	must(t, err)
	if r.Content != content || r.Title != l.Title || !slices.Equal(r.Packages, []string{"cam=1"}) || r.Seconds != 7 ||
		len(d.all) > 0 {
		t.Errorf("it is %+v, with doubts %q", r, d.all)
	}
	info, err := os.Stat(filepath.Join(to.Tree(travels), "etc/file7"))
	must(t, err)
	a, err1 := os.Stat(filepath.Join(to.Tree(travels), "etc/file3"))
	b, err2 := os.Stat(filepath.Join(to.Tree(travels), "usr/same"))
	if err1 != nil || err2 != nil || !os.SameFile(a, b) || info.ModTime().Unix() != 1_500_000_000 {
		t.Errorf("times or links differ: %v %v %v", info.ModTime(), err1, err2)
	}
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(to.Tree(travels), "etc/file2"), &st))
	if st.Nlink != 1 {
		t.Errorf("a file has %d names", st.Nlink)
	}
	if left, _ := filepath.Glob(filepath.Join(to.Dir, ".incoming/*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	must(t, to.Download(t.Context(), l, content, nil, quiet, d.add)) // the store already has it
}

// TestResumed: what arrived before an interruption is not sent again.
func TestResumed(t *testing.T) {
	from, l, content := traveller(t)
	to := Open(t.TempDir())
	cut := &counted{most: chunks.PieceSize + some/2}
	if err := to.Download(t.Context(), l, content, []chunks.Source{honest("sv1", from, cut)}, quiet, quiet); err == nil ||
		to.has(travels) {
		t.Fatalf("it came: %v", err)
	}
	must(t, to.Sweep()) // as each run begins
	rest := &counted{}
	must(t, to.Download(t.Context(), l, content, []chunks.Source{honest("sv1", from, rest)}, quiet, quiet))
	must(t, to.Verify(t.Context(), travels))
	if n := rest.bytes.Load(); n > 2*some {
		t.Errorf("%d bytes were sent after %d", n, cut.bytes.Load())
	}
	// Damage to the received parts is detected.
	to = Open(t.TempDir())
	_ = to.Download(t.Context(), l, content,
		[]chunks.Source{honest("sv1", from, &counted{most: chunks.PieceSize + some/2})},
		quiet, quiet)
	files, err := filepath.Glob(filepath.Join(to.Dir, ".incoming", travels, "files/*"))
	must(t, err)
	for _, name := range files {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		must(t, err)
		_, err = f.WriteAt([]byte("x"), 0)
		must(t, err)
		must(t, f.Close())
	}
	must(t, to.Download(t.Context(), l, content, []chunks.Source{honest("sv1", from, &counted{})}, quiet, quiet))
	must(t, to.Verify(t.Context(), travels))
	// GC removes parts of a layer.
	to = Open(t.TempDir())
	_ = to.Download(t.Context(), l, content,
		[]chunks.Source{honest("sv1", from, &counted{most: chunks.PieceSize + some/2})},
		quiet, quiet)
	_, err = to.GC(t.Context(), nil)
	must(t, err)
	if left, _ := filepath.Glob(filepath.Join(to.Dir, ".incoming/*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestPassedOn: a host that is receiving a layer sends on what has arrived, so that the host with
// the whole layer need not send it to all others.
func TestPassedOn(t *testing.T) {
	from, l, content := traveller(t)
	first, second := Open(t.TempDir()), Open(t.TempDir())
	sent := &counted{}
	begun, got := make(chan struct{}), make(chan error, 1)
	source := honest("sv1", from, sent)
	open := source.Open
	source.Open = func(ctx context.Context) (net.Conn, error) {
		select {
		case <-begun:
		default:
			close(begun)
		}
		return open(ctx)
	}
	go func() { got <- first.Download(t.Context(), l, content, []chunks.Source{source}, quiet, quiet) }()
	<-begun
	must(t, second.Download(t.Context(), l, content, []chunks.Source{honest("sv2", first, &counted{})}, quiet, quiet))
	must(t, <-got)
	must(t, second.Verify(t.Context(), travels))
	if n := sent.bytes.Load(); n > chunks.PieceSize+2*some {
		t.Errorf("the first host sent %d bytes", n)
	}
}

// TestLiars: a host that sends wrong data is named. The layer comes from the other hosts, or not at
// all.
//
// Promise (Networks): No host gives another a layer without the agreed digest, with a device, with
// anything outside it, or larger than there is room for; a host that tries is named.
func TestLiars(t *testing.T) {
	from, l, content := traveller(t)
	entries := func(change func(lines []map[string]any) []map[string]any) func([]byte) []byte {
		return func(whole []byte) []byte { return repacked(t, whole, change) }
	}
	entry := func(path string, set map[string]any) func([]byte) []byte {
		return entries(func(lines []map[string]any) []map[string]any {
			for _, e := range lines {
				if e["p"] == path {
					maps.Copy(e, set)
				}
			}
			return lines
		})
	}
	other := strings.Repeat("ab", 32)
	for name, f := range map[string]*forged{
		"another byte":   {piece: func(_ chunks.Piece, c []byte) []byte { c = bytes.Clone(c); c[0]++; return c }},
		"less":           {piece: func(_ chunks.Piece, c []byte) []byte { return c[1:] }},
		"more":           {piece: func(_ chunks.Piece, c []byte) []byte { return append(bytes.Clone(c), 0) }},
		"no index":       {index: func([]byte) []byte { return []byte("nothing") }},
		"an empty index": {index: func([]byte) []byte { return nil }},
		"another mode":   {index: entry("etc/file1", map[string]any{"m": unix.S_IFREG | 0o4755})},
		"another owner":  {index: entry("etc/file1", map[string]any{"u": 1 << 30})},
		"a device":       {index: entry("etc/file1", map[string]any{"m": unix.S_IFBLK | 0o600})},
		"a way out":      {index: entry("etc/file1", map[string]any{"p": "../../etc/passwd"})},
		"steering of overlayfs": {index: entry("etc",
			map[string]any{"x": map[string][]byte{"trusted.overlay.redirect": []byte("/")}})},
		"another size":      {index: entry("etc/file1", map[string]any{"s": 1 << 40})},
		"pieces of another": {index: entry("usr/large", map[string]any{"pieces": []string{other, other, other}})},
		"pieces of its own": {
			index: entry("usr/large", map[string]any{"pieces": []string{sevens(chunks.PieceSize), sevens(chunks.PieceSize),
				sevens(some)}}),
			piece: func(_ chunks.Piece, c []byte) []byte { return bytes.Repeat([]byte{7}, len(c)) },
		},
		"a link to another": {index: entry("usr/same", map[string]any{"h": "etc/file8"})},
		"out of order":      {index: entries(func(l []map[string]any) []map[string]any { slices.Reverse(l[1:]); return l })},
	} {
		t.Run(name, func(t *testing.T) {
			f.store, f.digest = from, travels
			to, d, other := Open(t.TempDir()), &doubts{}, honest("sv1", from, &counted{})
			other.Fallback = true // otherwise it may already have sent all of it
			err := to.Download(t.Context(), l, content, []chunks.Source{liar("sv3", f), other}, quiet, d.add)
			if err != nil || !strings.Contains(strings.Join(d.all, "\n"), "host sv3") {
				t.Errorf("it ends with %v, and doubts of %q", err, d.all)
			}
			must(t, to.Verify(t.Context(), travels))
			to = Open(t.TempDir())
			err = to.Download(t.Context(), l, content, []chunks.Source{liar("sv3", f)}, quiet, quiet)
			if err == nil || to.has(travels) {
				t.Errorf("it came from the liar alone: %v", err)
			}
		})
	}
}

func sevens(n int) string {
	sum := sha256.Sum256(bytes.Repeat([]byte{7}, n))
	return hex.EncodeToString(sum[:])
}

// repacked returns an index whose entries were changed.
func repacked(t *testing.T, whole []byte, change func([]map[string]any) []map[string]any) []byte {
	t.Helper()
	x, err := chunks.ReadIndex(bytes.NewReader(whole), 65536)
	must(t, err)
	var all []map[string]any
	for _, e := range x.Entries {
		text, err := json.Marshal(e)
		must(t, err)
		var fields map[string]any
		in := json.NewDecoder(bytes.NewReader(text))
		in.UseNumber()
		must(t, in.Decode(&fields))
		all = append(all, fields)
	}
	x.Entries = nil
	for _, e := range change(all) {
		text, err := json.Marshal(e)
		must(t, err)
		var entry chunks.Entry
		must(t, json.Unmarshal(text, &entry))
		x.Entries = append(x.Entries, entry)
	}
	var b bytes.Buffer
	must(t, x.Pack(&b))
	return b.Bytes()
}
