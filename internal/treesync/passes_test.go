package treesync

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/treesync/treesynctest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// describe returns a complete description of a tree.
func describe(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	names := map[uint64]string{}
	must(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		fmt.Fprintf(&b, "%q %o %d:%d %d", rel, st.Mode, st.Uid, st.Gid, st.Mtim.Nano())
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			if len(text) > 100 {
				text = fmt.Appendf(nil, "%d bytes, %d of them 0", len(text), bytes.Count(text, []byte{0}))
			}
			if names[st.Ino] == "" {
				names[st.Ino] = rel
			}
			fmt.Fprintf(&b, " %q as %s, sparse: %v", text, names[st.Ino], st.Blocks*512 < st.Size)
		case unix.S_IFLNK:
			to, _ := os.Readlink(p)
			fmt.Fprintf(&b, " -> %s", to)
		case unix.S_IFCHR:
			fmt.Fprintf(&b, " device %d", st.Rdev)
		}
		var value [100]byte
		for _, attr := range []string{"user.x", "trusted.overlay.opaque", "trusted.overlay.origin"} {
			if n, err := unix.Lgetxattr(p, attr, value[:]); err == nil {
				fmt.Fprintf(&b, " %s=%s", attr, value[:n])
			}
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}

// pair is a sender and a receiver, with a new stream for each transfer.
type pair struct {
	t      *testing.T
	sender Sender
	store  Receiver
	of     State
}

func (p *pair) send(still bool, sources ...Source) (*Pass, error) {
	p.t.Helper()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := p.store.Receive(far, p.of, func(name string) bool {
			return name == "private" || strings.HasPrefix(name, "volumes/")
		})
		far.Close() //nolint:errcheck // it is in memory
		ended <- err
	}()
	way, err := NewStream(near)
	var r *Pass
	if err == nil {
		r, err = p.sender.Send(p.t.Context(), way, sources, still)
	}
	near.Close() //nolint:errcheck // it is in memory
	if bad := <-ended; bad != nil {
		return nil, bad
	}
	return r, err
}

func newPair(t *testing.T) *pair {
	return &pair{t: t, store: Receiver{Dir: filepath.Join(t.TempDir(), "7")}, of: State{Name: "db", ID: 7, From: "sv1"}}
}

// TestRounds: the received trees equal the sent ones, including owners, times, attributes, links
// and holes. A second pass sends only what has changed.
func TestRounds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("owners and whiteouts need root")
	}
	dir := t.TempDir()
	p := newPair(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.MkdirAll(in("etc/deep/er"), 0o755))
	must(t, os.WriteFile(in("etc/a"), []byte("one"), 0o640))
	must(t, os.Chown(in("etc/a"), 1000, 1001))
	must(t, os.Link(in("etc/a"), in("etc/deep/b")))
	must(t, os.Symlink("/etc/shadow", in("etc/link")))
	must(t, unix.Mkfifo(in("pipe"), 0o600))
	must(t, unix.Mknod(in("hidden"), unix.S_IFCHR, 0))
	must(t, unix.Mknod(in("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	attrs := unix.Lsetxattr(in("etc/deep"), "trusted.overlay.opaque", []byte("y"), 0) == nil
	if attrs {
		must(t, unix.Lsetxattr(in("etc/deep"), "trusted.overlay.origin", []byte("z"), 0))
	}
	f, err := os.Create(in("disk"))
	must(t, err)
	must(t, f.Truncate(64<<20))
	for _, offset := range []int64{0, 10 << 20, 50 << 20} {
		_, err = f.WriteAt(bytes.Repeat([]byte("x"), 100_000), offset)
		must(t, err)
	}
	must(t, os.Chmod(in("etc"), 0o700))
	sources := []Source{{Name: "private", Dir: dir}, {Name: "volumes/data", Dir: filepath.Join(dir, "gone")}}
	want := func() {
		t.Helper()
		out := ""
		for conn := range strings.Lines(describe(t, dir)) {
			if !strings.HasPrefix(conn, `"null"`) {
				out += strings.ReplaceAll(conn, " trusted.overlay.origin=z", "")
			}
		}
		if got := describe(t, p.store.Tree("private")); got != out {
			t.Errorf("there is\n%s\nnot\n%s", got, out)
		}
	}
	r, err := p.send(false, sources...)
	must(t, err)
	want()
	if len(r.Left) != 1 || r.Left[0] != "null: a device" {
		t.Errorf("left is %q", r.Left)
	}
	time.Sleep(2 * settleTime) // so that a later change has another timestamp
	if r, err = p.send(false, sources...); err != nil || r.Bytes > 3*200_000 {
		t.Errorf("again: %+v, %v", r, err)
	}
	time.Sleep(2 * settleTime)
	if r, err = p.send(false, sources...); err != nil || r.Files > 0 || r.Bytes > 0 {
		t.Errorf("a third time: %+v, %v", r, err)
	}

	_, err = f.WriteAt([]byte("y"), 10<<20)
	must(t, err)
	must(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 50<<20, 1<<20))
	must(t, f.Close())
	must(t, os.RemoveAll(in("etc/deep/er")))
	must(t, os.Remove(in("etc/link")))
	must(t, os.Mkdir(in("etc/link"), 0o711))
	must(t, os.WriteFile(in("etc/link/new"), []byte("new"), 0o600))
	must(t, os.Remove(in("pipe")))
	must(t, os.WriteFile(in("etc/deep/b"), []byte("two"), 0o640))
	must(t, os.Link(in("etc/a"), in("c")))
	r, err = p.send(true, sources...)
	must(t, err)
	want()
	if r.Bytes > 2*blockSize+100 {
		t.Errorf("of one piece that has changed, %d bytes were sent", r.Bytes)
	}
	if stored, err := p.store.Read(); err != nil || stored.Sum != r.Sum || !stored.Whole {
		t.Errorf("the store has %+v of %+v (%v)", stored, r, err)
	}
	// another sender continues from what the receiver has
	p.sender = Sender{}
	if r, err = p.send(true, sources...); err != nil || r.Bytes > 100 { // a file with several names is sent again
		t.Errorf("anew: %+v, %v", r, err)
	}
	want()
}

// TestHostileSender: whatever a host sends stays in the directory, creates no device, and is no
// more than was announced.
//
// Promise (Trees that others write): Data from another host never leaves its tree; a disk from it
// is a file that no one else has, or is refused; interrupted data never counts as complete. With
// treesync.TestHostileReceiver, treesync.TestPolicies, engine/vm.TestTakeDisks,
// apply/local.TestMachineMoves, transport/transfer.TestWhole.
func TestHostileSender(t *testing.T) {
	for what, frames := range map[string]func(l *conn) error{
		"no round":     func(l *conn) error { return l.frame(treeStart, []byte("private")) },
		"another tree": func(l *conn) error { return l.frame(treeStart, []byte("keys/../..")) },
		"up": func(l *conn) error {
			return writeJSON(l, special, entry{Entry: Entry{Name: "../x", Mode: unix.S_IFIFO}})
		},
		"absolute": func(l *conn) error { return writeJSON(l, dirStart, entry{Entry: Entry{Name: "/etc"}}) },
		"through a link": func(l *conn) error {
			if err := writeJSON(l, special, entry{Entry: Entry{Name: "l", Mode: unix.S_IFLNK, Link: "/tmp"}}); err != nil {
				return err
			}
			return l.writeJSON(fileStart, entry{Entry: Entry{Name: "l/orrery-was-here", Mode: unix.S_IFREG}})
		},
		"a block device": func(l *conn) error {
			return writeJSON(l, special, entry{Entry: Entry{Name: "sda", Mode: unix.S_IFBLK | 0o666}})
		},
		"a link to above": func(l *conn) error {
			return writeJSON(l, link, entry{Entry: Entry{Name: "x", Same: "../../arrival.json"}})
		},
		"content of none": func(l *conn) error {
			return errOr(writeJSON(l, dirStart, entry{Entry: Entry{Name: "."}}),
				func() error { return l.frame(content, encodeOffset(0), []byte("x")) })
		},
		"beyond its end": func(l *conn) error {
			return errOr(writeJSON(l, fileStart, entry{Entry: Entry{Name: "f", Mode: unix.S_IFREG, Size: 1}}),
				func() error { return l.frame(content, encodeOffset(1), []byte("x")) })
		},
		"before its begin": func(l *conn) error {
			return errOr(writeJSON(l, fileStart, entry{Entry: Entry{Name: "f", Mode: unix.S_IFREG, Size: 1}}),
				func() error { return l.frame(content, encodeOffset(-1), []byte("x")) })
		},
		"more than said": func(l *conn) error {
			err := writeJSON(l, fileStart, entry{Entry: Entry{Name: "f", Mode: unix.S_IFREG, Size: 1 << 40}})
			for offset := int64(0); err == nil && offset < growthAllowance+2<<20; offset += 1 << 20 {
				err = l.frame(content, encodeOffset(offset), make([]byte, 1<<20))
			}
			return err
		},
		"a large frame":  func(l *conn) error { _, err := l.to.Write([]byte{content, 255, 255, 255, 255}); return err },
		"more than fits": func(l *conn) error { return l.writeJSON(passStart, start{Bytes: 1 << 60}) },
	} {
		t.Run(what, func(t *testing.T) {
			p := newPair(t)
			near, far := net.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- p.store.Receive(far, p.of, func(name string) bool { return name == "private" })
				far.Close() //nolint:errcheck // it is in memory
			}()
			l := newConn(near)
			var held progress
			must(t, l.readJSON(passStart, &held))
			if frames(l) == nil {
				_ = l.to.Flush()
			}
			near.Close() //nolint:errcheck // it is in memory
			if err := <-ended; err == nil {
				t.Error("it is taken")
			}
			for _, path := range []string{"/tmp/orrery-was-here", filepath.Join(filepath.Dir(p.store.Dir), "x")} {
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("%s is there", path)
				}
			}
			if stored, err := p.store.Read(); err == nil && (stored.Sum != "" || stored.Whole) {
				t.Errorf("the store says that it has %+v", stored)
			}
		})
	}
}

// writeJSON begins a pass and a tree, and sends an entry.
func writeJSON(l *conn, kind byte, e entry) error {
	l.restart("")
	return errOr(l.writeJSON(passStart, start{Bytes: 10}), func() error {
		return errOr(l.frame(treeStart, []byte("private")), func() error { return l.writeJSON(kind, e) })
	})
}

func errOr(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

// TestCut: after a stream was cut, what was received does not count as complete, and the next
// transfer continues from it.
func TestCut(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte("x"), 1<<20), 0o600))
	p := newPair(t)
	r, err := p.send(true, Source{Name: "private", Dir: dir})
	must(t, err)
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- p.store.Receive(far, p.of, func(string) bool { return true }) }()
	l := newConn(near)
	var held progress
	must(t, l.readJSON(passStart, &held))
	if held.Sum != r.Sum {
		t.Errorf("the store has %q of %q", held.Sum, r.Sum)
	}
	must(t, l.writeJSON(passStart, start{Base: held.Sum}))
	must(t, l.to.Flush())
	near.Close() //nolint:errcheck // it is cut
	if err := <-ended; err == nil {
		t.Error("it ends well")
	}
	if stored, err := p.store.Read(); err != nil || stored.Sum != "" || stored.Whole {
		t.Errorf("the store says that it has %+v (%v)", stored, err)
	}
	if again, err := p.send(true, Source{Name: "private", Dir: dir}); err != nil || again.Bytes != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if all, err := States(filepath.Dir(p.store.Dir)); err != nil ||
		!slices.ContainsFunc(all, func(r State) bool { return r.Name == "db" && r.Whole }) {
		t.Errorf("all are %+v (%v)", all, err)
	}
}

// TestWithout: excluded paths are not sent, and are removed if they were sent before.
func TestWithout(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("owners need root")
	}
	dir := t.TempDir()
	p := newPair(t)
	must(t, os.Mkdir(filepath.Join(dir, "etc"), 0o755))
	for _, name := range []string{"resolv.conf", "other"} {
		must(t, os.WriteFile(filepath.Join(dir, "etc", name), nil, 0o644))
	}
	for _, without := range [][]string{{"etc/resolv.conf"}, nil, {"etc/resolv.conf"}} {
		_, err := p.send(false, Source{Name: "private", Dir: dir, Without: without})
		must(t, err)
		if _, err := os.Lstat(filepath.Join(p.store.Tree("private"), "etc/resolv.conf")); (err != nil) != (without != nil) {
			t.Errorf("without %q: %v", without, err)
		}
		if _, err := os.Lstat(filepath.Join(p.store.Tree("private"), "etc/other")); err != nil {
			t.Error(err)
		}
	}
}

// TestAttributes: only attributes that are content of the node are transferred, even if one of the
// hosts lies.
func TestAttributes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("most attributes need root")
	}
	dir, p := t.TempDir(), newPair(t)
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
	set := map[string][]treesynctest.Attribute{"d": treesynctest.Set(t, filepath.Join(dir, "d")),
		"f": treesynctest.Set(t, filepath.Join(dir, "f"))}
	_, err := p.send(true, Source{Name: "private", Dir: dir})
	must(t, err)
	carried := func(a treesynctest.Attribute) bool { return a.Carried }
	for name, attrs := range set {
		treesynctest.Check(t, filepath.Join(p.store.Tree("private"), name), attrs, carried)
	}
	treesynctest.Same(t, "what is made", (&entry{Entry: Entry{Attrs: treesynctest.Values()}}).Header(ContentAttrs).Attrs,
		treesynctest.Attributes, carried)
}
