package treesync

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// cutAfter is a connection that fails after some bytes have been written to it.
type cutAfter struct {
	net.Conn
	left int
}

var errCut = errors.New("cut")

func (c *cutAfter) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		c.Close() //nolint:errcheck // it is in memory
		return 0, errCut
	}
	return c.Conn.Write(b)
}

// sendCut sends with a new sender over a connection that is cut.
func (p *pair) sendCut(after int, sources ...Source) {
	p.t.Helper()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- p.store.Receive(far, p.of, func(string) bool { return true }) }()
	to, err := NewStream(&cutAfter{near, after})
	if err == nil {
		_, err = new(Sender).Send(p.t.Context(), to, sources, false)
	}
	near.Close() //nolint:errcheck // it is cut
	if <-ended; err == nil {
		p.t.Fatalf("cut after %d bytes, it was sent", after)
	}
}

// TestResume: wherever a transfer was cut, another sender continues from what was received, even if
// the trees have changed.
func TestResume(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("owners and whiteouts need root")
	}
	noise := rand.NewChaCha8([32]byte{1})
	random := func(n int) []byte { b := make([]byte, n); noise.Read(b); return b } //nolint:errcheck // it never fails
	for _, after := range []int{500, 100_000, 300_000, 2_000_000} {
		dir := t.TempDir()
		p := newPair(t)
		in := func(name ...string) string { return filepath.Join(append([]string{dir, "private"}, name...)...) }
		must(t, os.MkdirAll(in("a", "b", "c"), 0o755))
		must(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "data", "rows"), random(1000), 0o600))
		must(t, os.WriteFile(in("a", "big"), random(2<<20), 0o600))
		must(t, os.WriteFile(in("a", "small"), random(300), 0o644))
		must(t, os.WriteFile(in("a", "two"), random(70_000), 0o644))
		must(t, os.Link(in("a", "two"), in("b")))
		must(t, os.WriteFile(in("a", "z"), random(200_000), 0o644))
		must(t, os.Symlink("x", in("link")))
		marked := unix.Lsetxattr(in("a", "b"), "trusted.overlay.opaque", []byte("y"), 0) == nil
		sources := []Source{{Name: "volumes/data", Dir: filepath.Join(dir, "data")}, {Name: "private", Dir: in()}}
		p.sendCut(after, sources...)
		if stored, err := p.store.Read(); err == nil && stored.Sum != "" {
			t.Errorf("after the cut it has %+v (%v)", stored, err)
		}

		must(t, os.RemoveAll(filepath.Join(dir, "data")))
		if marked {
			must(t, unix.Lremovexattr(in("a", "b"), "trusted.overlay.opaque"))
		}
		f, err := os.OpenFile(in("a", "big"), os.O_RDWR, 0)
		must(t, err)
		_, err = f.WriteAt([]byte("change"), 1<<20)
		must(t, errors.Join(err, f.Truncate(2<<20-5), f.Close()))
		must(t, os.Remove(in("a", "small")))
		must(t, os.Mkdir(in("a", "small"), 0o700))
		must(t, os.RemoveAll(in("a", "b", "c")))
		must(t, os.WriteFile(in("a", "b", "c"), nil, 0o600))
		must(t, os.Remove(in("link")))
		must(t, os.Link(in("a", "z"), in("link")))

		p.sender = Sender{}
		r, err := p.send(true, sources...)
		must(t, err)
		if got, want := describe(t, p.store.Tree("private")), describe(t, in()); got != want {
			t.Errorf("cut after %d bytes, there is\n%s\nnot\n%s", after, got, want)
		}
		if tree.Exists(p.store.Tree("volumes/data")) {
			t.Errorf("cut after %d bytes, a tree is there that is gone", after)
		}
		if most := int64(2<<20 + 300_000 - after + 3*blockSize); r.Bytes > most {
			t.Errorf("cut after %d bytes, %d come again", after, r.Bytes)
		}
		if stored, err := p.store.Read(); err != nil || stored.Sum != r.Sum || !stored.Whole {
			t.Errorf("it has %+v of %+v (%v)", stored, r, err)
		}
	}
}

// TestResumeAnother: data of another node, or from another host, is not continued.
func TestResumeAnother(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte("x"), 100_000), 0o600))
	source := Source{Name: "private", Dir: dir}
	p := newPair(t)
	p.sendCut(80_000, source)
	for _, of := range []State{{Name: "web", ID: 7, From: "sv1"}, {Name: "db", ID: 7, From: "sv2"},
		{Name: "db", ID: 8, From: "sv1"}} {
		p.of, p.sender = of, Sender{}
		if r, err := p.send(false, source); err != nil || r.Bytes != 100_000 {
			t.Errorf("%+v: %+v, %v", of, r, err)
		}
	}
}

// TestHostileReceiver: a list of impossible paths ends the transfer.
func TestHostileReceiver(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600))
	path := func(c *conn, name string, mode uint32) error {
		return c.writeJSON(hasPath, entry{Entry: Entry{Name: Name(name), Mode: mode}})
	}
	top := func(c *conn) error {
		return errors.Join(c.frame(treeStart, []byte("private")), path(c, ".", unix.S_IFDIR))
	}
	for what, list := range map[string]func(c *conn) error{
		"a tree of no name":      func(c *conn) error { return c.frame(treeStart, []byte("../x")) },
		"a path of no tree":      func(c *conn) error { return path(c, "f", unix.S_IFREG) },
		"a way out":              func(c *conn) error { return errors.Join(top(c), path(c, "../f", unix.S_IFREG)) },
		"a path in no directory": func(c *conn) error { return errors.Join(top(c), path(c, "a/b", unix.S_IFREG)) },
		"a path in a file": func(c *conn) error {
			return errors.Join(top(c), path(c, "a", unix.S_IFREG), path(c, "a/b", unix.S_IFREG))
		},
		"sums of nothing": func(c *conn) error { return c.frame(blockSums, make([]byte, sumBytes)) },
		"half a sum": func(c *conn) error {
			return errors.Join(top(c), path(c, "f", unix.S_IFREG), c.frame(blockSums, make([]byte, 7)))
		},
		"content": func(c *conn) error { return errors.Join(top(c), c.frame(content, encodeOffset(0), []byte("x"))) },
		"a pass":  func(c *conn) error { return c.writeJSON(passEnd, progress{}) },
		"more paths than are sent": func(c *conn) error {
			err := top(c)
			for i := 0; err == nil && i < 1<<17; i++ {
				err = path(c, "a", unix.S_IFREG)
			}
			return err
		},
		"more sums than are sent": func(c *conn) error {
			err := errors.Join(top(c), path(c, "f", unix.S_IFREG))
			for i := 0; err == nil && i < 1000; i++ {
				err = c.frame(blockSums, make([]byte, 1000*sumBytes))
			}
			return err
		},
	} {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			c := newConn(far)
			if c.writeJSON(passStart, progress{Kept: true}) != nil {
				return
			}
			if kind, _, err := c.next(); err != nil || kind != passStart || list(c) != nil || c.frame(listEnd) != nil ||
				c.to.Flush() != nil {
				return
			}
			_, _ = io.Copy(io.Discard, far)
		}()
		to, err := NewStream(near)
		must(t, err)
		if _, err := new(Sender).Send(t.Context(), to, []Source{{Name: "private", Dir: dir}}, true); !errors.Is(err,
			errProtocol) {
			t.Errorf("%s: %v", what, err)
		}
		near.Close() //nolint:errcheck // it is in memory
	}
}

// script is a peer that sends a given text and ignores what it receives.
type script struct{ io.Reader }

func (script) Write(b []byte) (int, error) { return len(b), nil }

// FuzzReceive: whatever a sender sends, nothing is written outside of the directory, and an
// incomplete transfer never counts as complete.
func FuzzReceive(f *testing.F) {
	var b bytes.Buffer
	c := newConn(struct {
		io.Reader
		io.Writer
	}{nil, &b})
	top := entry{Entry: Entry{Name: ".", Mode: unix.S_IFDIR | 0o755}}
	file := entry{Entry: Entry{Name: "f", Mode: unix.S_IFREG | 0o644, Size: 1}}
	for _, err := range []error{
		c.writeJSON(passStart, start{Bytes: 10}), c.frame(treeStart, []byte("private")), c.writeJSON(dirStart, top),
		c.writeJSON(fileStart, file),
		c.frame(content, encodeOffset(0), []byte("x")), c.writeJSON(fileEnd, file),
		c.writeJSON(special, entry{Entry: Entry{Name: "l", Mode: unix.S_IFLNK, Link: "f"}}),
		c.writeJSON(link, entry{Entry: Entry{Name: "h", Same: "f"}}), c.frame(removed, []byte("h")),
		c.writeJSON(dirEnd, top), c.frame(treeGone, []byte("keys")),
		c.writeJSON(passEnd, end{Whole: true}), c.to.Flush(),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	f.Add(b.Bytes())
	f.Add(bytes.Replace(b.Bytes(), []byte(`"p":"f"`), []byte(`"p":"/"`), 2))
	f.Fuzz(func(t *testing.T, sent []byte) {
		above := t.TempDir()
		r := Receiver{Dir: filepath.Join(above, "7")}
		err := r.Receive(script{bytes.NewReader(sent)}, State{Name: "db", ID: 7}, func(string) bool { return true })
		names, _ := os.ReadDir(above)
		if len(names) > 1 || len(names) == 1 && names[0].Name() != "7" {
			t.Errorf("there is %v", names)
		}
		if stored, wrong := r.Read(); err != nil && wrong == nil && stored.Sum == "" && stored.Whole {
			t.Errorf("it has %+v after %v", stored, err)
		}
	})
}

// FuzzResume: whatever a receiver lists, the sender terminates.
func FuzzResume(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	c := newConn(struct {
		io.Reader
		io.Writer
	}{nil, &b})
	for _, err := range []error{
		c.writeJSON(passStart, progress{Kept: true}), c.frame(treeStart, []byte("private")),
		c.writeJSON(hasPath, entry{Entry: Entry{Name: ".", Mode: unix.S_IFDIR}}),
		c.writeJSON(hasPath, entry{Entry: Entry{Name: "f", Mode: unix.S_IFREG}}),
		c.frame(blockSums, encodeOffset(0), make([]byte, 16)), c.frame(listEnd), c.to.Flush(),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	f.Add(b.Bytes())
	f.Add(bytes.ReplaceAll(b.Bytes(), []byte(`"p":"f"`), []byte(`"p":"."`)))
	f.Fuzz(func(t *testing.T, said []byte) {
		to, err := NewStream(script{bytes.NewReader(said)})
		if err != nil {
			return
		}
		if _, err := new(Sender).Send(t.Context(), to, []Source{{Name: "private", Dir: dir}}, true); err == nil {
			// it would have to know the digest, which depends on a nonce
			t.Error("a receiver that has got nothing was believed")
		}
	})
}
