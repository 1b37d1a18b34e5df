package nodecopy

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// honest is a node with the file system of this machine.
type honest struct{ host.Local }

// liar is a node whose tar may send anything.
type liar struct {
	host.Runner
	sends func(w io.Writer) error
}

func (l liar) Run(_ context.Context, c host.Command) error { return l.sends(c.Stdout) }

// handed sends the stream of a node through a pipe that is handed over, like the stream of a real
// tar.
func handed(sends func(io.Writer) error) func(io.Writer) error {
	return func(to io.Writer) error {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		go func() {
			_ = sends(w)
			w.Close()
		}()
		return to.(host.OutputReader).ReadOutput(r)
	}
}

// entries returns a stream of these entries. Each content has the length of its size.
func entries(all ...tar.Header) func(io.Writer) error {
	return func(to io.Writer) error {
		w := tar.NewWriter(to)
		for i := range all {
			h := all[i]
			if h.Typeflag == 0 {
				h.Typeflag = tar.TypeReg
			}
			if h.Mode == 0 {
				h.Mode = 0o755
			}
			if err := w.WriteHeader(&h); err != nil {
				return err
			}
			if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
				return err
			}
		}
		return w.Close()
	}
}

func dirEntry(name string) tar.Header { return tar.Header{Name: name + "/", Typeflag: tar.TypeDir} }

// copied copies "thing" from a node that sends the given stream to a directory. It checks that
// nothing is written outside of it, and returns the parent directory.
func copied(t *testing.T, to string, sends func(io.Writer) error) (dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	mustDo(t, os.MkdirAll(filepath.Join(dir, "outside"), 0o755))
	mustDo(t, os.WriteFile(filepath.Join(dir, "outside", "key"), []byte("of the host"), 0o600))
	mustDo(t, os.MkdirAll(filepath.Join(dir, "into"), 0o755))
	err = Copy(t.Context(), Endpoint{In: liar{sends: sends}, Path: "/srv/thing"},
		Endpoint{Path: filepath.Join(dir, "into", to)}, false)
	text, read := os.ReadFile(filepath.Join(dir, "outside", "key"))
	if read != nil || string(text) != "of the host" {
		t.Errorf("the host's file holds %q: %v", text, read)
	}
	if names, _ := os.ReadDir(filepath.Join(dir, "outside")); len(names) != 1 {
		t.Errorf("there are %d files outside", len(names))
	}
	hidden, _ := filepath.Glob(filepath.Join(dir, "into", ".orrery*"))
	if len(hidden) > 0 {
		t.Errorf("%q are left", hidden)
	}
	return dir, err
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostileTar checks that a node's tar can write nothing outside the destination, and that
// nothing of an invalid stream is kept.
//
// Promise (Trees that others write): `cp` makes only files, directories and links on the host,
// below the destination, owned by the caller. With host/nodecopy.TestLinksAtTheDestination,
// host/nodecopy.TestOnlyFiles, host/nodecopy.FuzzCargo.
func TestHostileTar(t *testing.T) {
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}
	}
	same := func(name, of string) tar.Header { return tar.Header{Name: name, Linkname: of, Typeflag: tar.TypeLink} }
	for name, c := range map[string]struct {
		sends func(io.Writer) error
		want  string
	}{
		"above": {entries(tar.Header{Name: "../outside/key", Size: 1}), "is not below"},
		"above, in it": {entries(dirEntry("thing"), tar.Header{Name: "thing/../../outside/key", Size: 1}),
			"is not below"},
		"absolute":       {entries(tar.Header{Name: "/etc/orrery-test", Size: 1}), "is not below"},
		"another":        {entries(tar.Header{Name: "other", Size: 1}), "is not below"},
		"the top itself": {entries(dirEntry(".")), "is not below"},
		"below a link": {entries(dirEntry("thing"), link("thing/a", "../../outside"),
			tar.Header{Name: "thing/a/key", Size: 1}), "is missing"},
		"below a link at top": {entries(link("thing", "../outside"), tar.Header{Name: "thing/key", Size: 1}),
			"is missing"},
		"a link for a dir": {entries(dirEntry("thing"), dirEntry("thing/a"), link("thing/a", "../../outside"),
			tar.Header{Name: "thing/a/key", Size: 1}), "comes after"},
		"twice": {entries(dirEntry("thing"), tar.Header{Name: "thing/a", Size: 1},
			tar.Header{Name: "thing/a", Size: 2}), "comes after"},
		"without directory": {entries(dirEntry("thing"), tar.Header{Name: "thing/a/b", Size: 1}), "is missing"},
		"another name of":   {entries(dirEntry("thing"), same("thing/a", "../outside/key")), "does not precede"},
		"another name of /": {entries(dirEntry("thing"), same("thing/a", "/etc/passwd")), "does not precede"},
		"a name below a link": {entries(dirEntry("thing"), link("thing/a", "../../outside"),
			same("thing/b", "thing/a/key")), "not a directory"},
		"a device at top": {entries(tar.Header{Name: "thing", Typeflag: tar.TypeBlock, Devmajor: 8}), "is a device"},
		"a long name": {entries(dirEntry("thing"), tar.Header{Name: "thing/" + strings.Repeat("x", 300), Size: 1}),
			"is not below"},
		"nothing": {entries(), "it is empty"},
		"no archive": {func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Repeat("x", 2048))
			return err
		}, "invalid tar header"},
		"cut short": {func(w io.Writer) error {
			tw := tar.NewWriter(w)
			_ = tw.WriteHeader(&tar.Header{Name: "thing", Size: 1 << 20, Mode: 0o600})
			_, _ = tw.Write(make([]byte, 1000))
			return nil
		}, "unexpected EOF"},
		"it fails": {func(w io.Writer) error {
			_, _ = io.WriteString(w, "")
			return &host.RunError{Place: "n", Status: 1, Output: "the file does not exist"}
		}, "the file does not exist"},
		"never ends": {func(w io.Writer) error {
			if err := entries(tar.Header{Name: "thing", Size: 1})(w); err != nil {
				return err
			}
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return err
				}
			}
		}, "data follows its end"},
		"holes": {func(w io.Writer) error {
			tw := tar.NewWriter(w)
			_ = tw.WriteHeader(&tar.Header{Name: "thing/", Typeflag: tar.TypeDir, Mode: 0o755})
			_ = tw.Flush()
			return sparse(w)
		}, "unknown type"},
		"holes, of PAX": {holes(t), "has holes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := copied(t, "", c.sends)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if names, _ := os.ReadDir(filepath.Join(dir, "into")); len(names) > 0 {
				t.Errorf("%v was laid down", names)
			}
		})
	}
}

// holes returns the output of tar for a file of 1 TiB that is one hole.
func holes(t *testing.T) func(io.Writer) error {
	file := filepath.Join(t.TempDir(), "thing")
	mustDo(t, os.WriteFile(file, nil, 0o600))
	mustDo(t, os.Truncate(file, 1<<40))
	return func(w io.Writer) error {
		args := []string{"tar", "--format=posix", "--sparse", "-C", filepath.Dir(file), "-cf", "-", "thing"}
		return host.Local{}.Run(context.Background(), host.Command{Args: args, Stdout: w})
	}
}

// sparse writes a file of 1 TiB without data, in GNU's old format for sparse files.
func sparse(w io.Writer) error {
	b := make([]byte, 512)
	copy(b, "thing/holes")
	copy(b[100:], "0000644\x00")
	copy(b[108:], "0000000\x00")
	copy(b[116:], "0000000\x00")
	copy(b[124:], "00000000000\x00")
	copy(b[136:], "00000000000\x00")
	b[156] = 'S'
	copy(b[257:], "ustar  \x00")
	copy(b[386:], "00000000000\x0000000000000\x00")
	copy(b[483:], "77777777777\x00")
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	_, err := w.Write(append(b, make([]byte, 1024)...))
	return err
}

// TestOnlyFiles checks what is not copied from a node: set-user-ID bits, owners, devices and named
// pipes.
func TestOnlyFiles(t *testing.T) {
	dir, err := copied(t, "", entries(dirEntry("thing"),
		tar.Header{Name: "thing/console", Typeflag: tar.TypeChar, Devmajor: 5, Devminor: 1},
		tar.Header{Name: "thing/link", Linkname: "/etc/shadow", Typeflag: tar.TypeSymlink},
		tar.Header{Name: "thing/pipe\x1b[2J", Typeflag: tar.TypeFifo},
		tar.Header{Name: "thing/suid", Mode: 0o6755, Size: 5, Uid: 1234, Gid: 1234},
		tar.Header{Name: "thing/twin", Linkname: "thing/suid", Typeflag: tar.TypeLink},
	))
	if err == nil || !strings.Contains(err.Error(), "thing/console is a device") ||
		!strings.Contains(err.Error(), `thing/pipe\x1b[2J is a named pipe`) {
		t.Errorf("error %v", err)
	}
	at := filepath.Join(dir, "into", "thing")
	var st unix.Stat_t
	mustDo(t, unix.Lstat(filepath.Join(at, "suid"), &st))
	if st.Mode&0o7777 != 0o755 || int(st.Uid) != os.Geteuid() || st.Nlink != 2 || st.Size != 5 {
		t.Errorf("mode %o of %d, %d names, %d bytes", st.Mode, st.Uid, st.Nlink, st.Size)
	}
	if to, _ := os.Readlink(filepath.Join(at, "link")); to != "/etc/shadow" {
		t.Errorf("the link says %q", to)
	}
	if names, _ := os.ReadDir(at); len(names) != 3 {
		t.Errorf("there are %v", names)
	}
}

// TestLinksAtTheDestination checks that existing links below the destination are replaced and not
// followed.
func TestLinksAtTheDestination(t *testing.T) {
	for name, lay := range map[string]func(into string) error{
		"a file":      func(into string) error { return os.Symlink("../outside/key", filepath.Join(into, "thing")) },
		"a directory": func(into string) error { return os.Symlink("../outside", filepath.Join(into, "thing")) },
		"one below": func(into string) error {
			return errors.Join(os.Mkdir(filepath.Join(into, "thing"), 0o755),
				os.Symlink("../../outside/key", filepath.Join(into, "thing", "key")))
		},
		"a directory, below": func(into string) error {
			return errors.Join(os.Mkdir(filepath.Join(into, "thing"), 0o755),
				os.Symlink("../../outside", filepath.Join(into, "thing", "sub")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			into := filepath.Join(dir, "into")
			mustDo(t, errors.Join(os.Mkdir(into, 0o755), os.Mkdir(filepath.Join(dir, "outside"), 0o755)))
			mustDo(t, os.WriteFile(filepath.Join(dir, "outside", "key"), []byte("of the host"), 0o600))
			mustDo(t, lay(into))
			again := Endpoint{In: liar{sends: entries(dirEntry("thing"), tar.Header{Name: "thing/key", Size: 3},
				dirEntry("thing/sub"), tar.Header{Name: "thing/sub/key", Size: 4})}, Path: "/srv/thing"}
			mustDo(t, Copy(t.Context(), again, Endpoint{Path: into}, true))
			for file, want := range map[string]string{"thing/key": "xxx", "thing/sub/key": "xxxx"} {
				if text, err := os.ReadFile(filepath.Join(into, file)); err != nil || string(text) != want {
					t.Errorf("%s holds %q: %v", file, text, err)
				}
			}
			if text, _ := os.ReadFile(filepath.Join(dir, "outside", "key")); string(text) != "of the host" {
				t.Errorf("the host's file holds %q", text)
			}
			if _, err := os.Lstat(filepath.Join(dir, "outside", "sub")); err == nil {
				t.Error("something was made outside")
			}
		})
	}
}

// TestCopies checks copies in all directions between honest places: contents, modes, times, links
// and names are preserved.
func TestCopies(t *testing.T) {
	when := time.Date(2020, 1, 2, 3, 4, 5, 600, time.UTC)
	node := func(path string) Endpoint { return Endpoint{In: honest{}, Path: path} }
	here := func(path string) Endpoint { return Endpoint{Path: path} }
	for name, ways := range map[string][2]func(string) Endpoint{
		"in": {here, node}, "out": {node, here}, "across": {node, node}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			from := filepath.Join(dir, "a thing")
			mustDo(t, os.MkdirAll(filepath.Join(from, "sub", "empty"), 0o755))
			mustDo(t, os.WriteFile(filepath.Join(from, "sub", "-x\n"), bytes.Repeat([]byte("0123456789abcdef"), 1<<16), 0o640))
			mustDo(t, os.WriteFile(filepath.Join(from, "sub.file"), nil, 0o600))
			mustDo(t, os.Link(filepath.Join(from, "sub", "-x\n"), filepath.Join(from, "twin")))
			mustDo(t, os.Symlink("nowhere", filepath.Join(from, "link")))
			mustDo(t, os.Chmod(filepath.Join(from, "sub"), 0o711))
			for _, p := range []string{"sub/-x\n", "sub/empty", "sub", ""} {
				mustDo(t, os.Chtimes(filepath.Join(from, p), when, when))
			}
			to := filepath.Join(dir, "new", "other")
			mustDo(t, os.Mkdir(filepath.Join(dir, "new"), 0o755))
			for range 2 { // the second time over existing files
				mustDo(t, Copy(t.Context(), ways[0](from), ways[1](to), false))
				if _, err := os.Stat(filepath.Join(to, "a thing")); err == nil {
					mustDo(t, os.RemoveAll(filepath.Join(to, "a thing")))
				}
			}
			mustDo(t, Copy(t.Context(), ways[0](filepath.Join(from, "link")), ways[1](filepath.Join(dir, "made")+"/"),
				false))
			if link, _ := os.Readlink(filepath.Join(dir, "made", "link")); link != "nowhere" {
				t.Errorf("the link says %q", link)
			}
			info, err := os.Stat(filepath.Join(to, "sub"))
			mustDo(t, err)
			if info.Mode().Perm() != 0o711 || !info.ModTime().Equal(when) {
				t.Errorf("directory: %v, %v", info.Mode(), info.ModTime())
			}
			info, err = os.Stat(filepath.Join(to, "sub", "-x\n"))
			mustDo(t, err)
			if info.Mode().Perm() != 0o640 || !info.ModTime().Equal(when) || info.Size() != 1<<20 {
				t.Errorf("file: %v, %v, %d bytes", info.Mode(), info.ModTime(), info.Size())
			}
			if twin, err := os.Stat(filepath.Join(to, "twin")); err != nil || !os.SameFile(info, twin) {
				t.Errorf("the second name: %v", err)
			}
			err = Copy(t.Context(), ways[0](filepath.Join(dir, "none")), ways[1](dir), false)
			if err == nil || !strings.Contains(err.Error(), "the file does not exist") {
				t.Errorf("of no file: %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(dir, "*", ".orrery*"))
			if len(left) > 0 {
				t.Errorf("%q are left", left)
			}
		})
	}
}

// endless returns an endless stream of one file, and calls then after some of it.
func endless(then func()) func(io.Writer) error {
	return func(w io.Writer) error {
		tw := tar.NewWriter(w)
		if err := tw.WriteHeader(&tar.Header{Name: "thing", Size: 1 << 40, Mode: 0o600}); err != nil {
			return err
		}
		for i := 0; ; i++ {
			if _, err := tw.Write(make([]byte, 1<<16)); err != nil {
				return err
			}
			if i == 10 && then != nil {
				then()
			}
		}
	}
}

// counted counts the bytes read from a pipe.
type counted struct {
	*os.File
	bytes int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	c.bytes += n
	return n, err
}

// TestSpliced checks that the kernel splices a large file of a node. Little of it is read by this
// process, and the next header is found after it.
func TestSpliced(t *testing.T) {
	const size = 20*readSize + 1
	r, w, err := os.Pipe()
	mustDo(t, err)
	go func() {
		_ = entries(dirEntry("thing"), tar.Header{Name: "thing/a", Size: size}, tar.Header{Name: "thing/b", Size: 5})(w)
		w.Close()
	}()
	from, dir, moved := &counted{File: r}, filepath.Join(t.TempDir(), "cargo"), int64(0)
	c := openArchive(from, "thing")
	c.moved = func(n int64) { moved += n }
	mustDo(t, c.extract(t.Context(), dir))
	for name, want := range map[string]int{"a": size, "b": 5} {
		if text, err := os.ReadFile(filepath.Join(dir, "thing", name)); err != nil ||
			!bytes.Equal(text, bytes.Repeat([]byte("x"), want)) {
			t.Errorf("%s has %d bytes: %v", name, len(text), err)
		}
	}
	if from.bytes > size/2 {
		t.Errorf("%d bytes of %d were read", from.bytes, size)
	}
	if moved != size+5 {
		t.Errorf("%d bytes are told", moved)
	}
}

// TestInterruptedCopy checks that an interrupted copy leaves no files.
func TestInterruptedCopy(t *testing.T) {
	into := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	if err := Copy(ctx, Endpoint{In: liar{sends: endless(cancel)}, Path: "/srv/thing"}, Endpoint{Path: into},
		false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if names, _ := os.ReadDir(into); len(names) > 0 {
		t.Errorf("%v are left", names)
	}
}

// TestInterruptedCopyIntoNode checks the same for a copy into a node, from this host and from
// another node.
func TestInterruptedCopyIntoNode(t *testing.T) {
	from := filepath.Join(t.TempDir(), "thing")
	mustDo(t, os.WriteFile(from, nil, 0o600))
	mustDo(t, os.Truncate(from, 1<<40))
	for name, source := range map[string]Endpoint{"in": {Path: from},
		"across": {In: liar{sends: endless(nil)}, Path: from}} {
		t.Run(name, func(t *testing.T) {
			into := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for {
					begun, _ := filepath.Glob(filepath.Join(into, ".orrery.*", "thing"))
					if len(begun) > 0 || ctx.Err() != nil {
						cancel()
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			began := time.Now()
			if err := Copy(ctx, source, Endpoint{In: honest{}, Path: into}, false); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if names, _ := os.ReadDir(into); len(names) > 0 {
				t.Errorf("%v are left", names)
			}
			if took := time.Since(began); took > cleanupTimeout {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestCures checks that the error of a failed copy has the right cure.
func TestCures(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	for cure, failure := range map[string]struct {
		ctx context.Context
		err error
	}{
		"run the same command again":  {interrupted, context.Canceled},
		"whether the node still runs": {t.Context(), &host.RunError{Place: "store", Status: 143}},
		"fix this in the node": {t.Context(),
			&host.RunError{Place: "store", Status: 1, Output: "the file does not exist"}},
		"make room in the node": {t.Context(),
			&host.RunError{Place: "store", Status: 2, Output: "tar: No space left on device"}},
		"fix the cause and run the same ": {t.Context(), errors.New("broken")},
	} {
		sends := func(io.Writer) error {
			if failure.ctx == interrupted {
				interrupt()
			}
			return failure.err
		}
		err := Copy(failure.ctx, Endpoint{In: liar{sends: sends}, Path: "/srv/thing"}, Endpoint{Path: t.TempDir()}, false)
		var p *problem.Problem
		if !errors.As(err, &p) || !strings.Contains(p.Cure, cure) {
			t.Errorf("%v: the cure is not %q", err, cure)
		}
	}
}

// TestOnWhatIsThere checks that a copy replaces regular files, and follows a link that the operator
// names. It must not replace a pipe, a device or a socket.
func TestOnWhatIsThere(t *testing.T) {
	from := filepath.Join(t.TempDir(), "thing")
	mustDo(t, os.WriteFile(from, []byte("fresh"), 0o600))
	for side, way := range map[string][2]Endpoint{"in": {{Path: from}, {In: honest{}}},
		"out": {{In: honest{}, Path: from}, {}}} {
		for name, c := range map[string]struct {
			make func(at string) error
			at   string // file that contains the text afterwards
			err  string
		}{
			"file": {func(at string) error { return os.WriteFile(at, []byte("old"), 0o600) }, "at", ""},
			"link": {func(at string) error {
				return errors.Join(os.WriteFile(at+"-far", nil, 0o600), os.Symlink(at+"-far", at))
			}, "at-far", ""},
			"link to nothing": {func(at string) error { return os.Symlink("none", at) }, "", "does not exist"},
			"pipe":            {func(at string) error { return unix.Mkfifo(at, 0o600) }, "", "not a regular file"},
			"link to a pipe": {func(at string) error {
				return errors.Join(unix.Mkfifo(at+"-far", 0o600), os.Symlink("at-far", at))
			}, "", "not a regular file"},
			"pipe in a directory": {func(at string) error {
				return errors.Join(os.Mkdir(at, 0o700), unix.Mkfifo(filepath.Join(at, "thing"), 0o600))
			}, "", "not a regular file"},
		} {
			t.Run(side+"/"+name, func(t *testing.T) {
				dir := t.TempDir()
				at := filepath.Join(dir, "at")
				mustDo(t, c.make(at))
				before, _ := os.Lstat(at)
				to := way[1]
				to.Path = at
				err := Copy(t.Context(), way[0], to, false)
				if c.err == "" {
					mustDo(t, err)
					if text, err := os.ReadFile(filepath.Join(dir, c.at)); err != nil || string(text) != "fresh" {
						t.Errorf("%s holds %q: %v", c.at, text, err)
					}
				} else if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v", err)
				}
				if after, err := os.Lstat(at); err != nil || after.Mode() != before.Mode() {
					t.Errorf("it was %v, and is %v: %v", before.Mode(), after.Mode(), err)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, ".orrery*")); len(left) > 0 {
					t.Errorf("%q are left", left)
				}
			})
		}
	}
}

// TestCutShort checks that a stream that ends after a complete file is rejected, although tar
// accepts it: the sender may have been killed.
func TestCutShort(t *testing.T) {
	into := t.TempDir()
	var sent bytes.Buffer
	mustDo(t, entries(dirEntry("thing"), tar.Header{Name: "thing/a", Size: 512})(&sent))
	sent.Truncate(1536) // two headers and one content
	err := Endpoint{In: honest{}, Path: into}.extractInNode(t.Context(), &sent, "thing", false)
	if err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("error %v", err)
	}
	if names, _ := os.ReadDir(into); len(names) > 0 {
		t.Errorf("%v are left", names)
	}
}

// TestLeftCopies checks that the next copy removes what a killed copy has left, but not the files
// of a copy that is running.
func TestLeftCopies(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "thing")
	mustDo(t, os.WriteFile(from, []byte("text"), 0o600))
	long := time.Now().Add(-time.Hour)
	for name, ways := range map[string][2]Endpoint{
		"in":  {{Path: from}, {In: honest{}, Path: filepath.Join(dir, "in")}},
		"out": {{In: honest{}, Path: from}, {Path: filepath.Join(dir, "out")}},
	} {
		into := ways[1].Path
		left := filepath.Join(into, map[string]string{"in": ".orrery.Xyzabc", "out": ".orrery-ABCDEFGHIJKL"}[name])
		live := filepath.Join(into, map[string]string{"in": ".orrery.XyzabC", "out": ".orrery-ABCDEFGHIJKM"}[name])
		fresh := filepath.Join(into, map[string]string{"in": ".orrery.XyzaBC", "out": ".orrery-ABCDEFGHIJKN"}[name])
		theirs := filepath.Join(into, ".orrery-of-the-user")
		for _, path := range []string{left, live, theirs, fresh} {
			mustDo(t, os.MkdirAll(filepath.Join(path, "part"), 0o755))
			mustDo(t, os.Chtimes(path, long, long))
		}
		mustDo(t, os.Chtimes(fresh, time.Now(), time.Now()))
		lock, err := os.Open(live)
		mustDo(t, err)
		mustDo(t, host.Flock(lock, host.Exclusive))
		defer lock.Close()
		mustDo(t, Copy(t.Context(), ways[0], ways[1], false))
		if _, err := os.Lstat(left); err == nil {
			t.Errorf("%s: what was left stays", name)
		}
		for _, path := range []string{live, theirs, fresh, filepath.Join(into, "thing")} {
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestLoad checks that a copy into a node does not follow links, and leaves out special files.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	mustDo(t, os.Mkdir(filepath.Join(dir, "thing"), 0o755))
	mustDo(t, unix.Mkfifo(filepath.Join(dir, "thing", "pipe"), 0o600))
	mustDo(t, os.Symlink("/etc/passwd", filepath.Join(dir, "thing", "passwd")))
	var sent bytes.Buffer
	l, err := pack(t.Context(), filepath.Join(dir, "thing"), &sent, nil)
	mustDo(t, err)
	if err := l.left.problem(); err == nil || !strings.Contains(err.Error(), "thing/pipe is a named pipe") {
		t.Errorf("left out: %v", err)
	}
	r := tar.NewReader(&sent)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		mustDo(t, err)
		if h.Typeflag == tar.TypeReg && h.Name != sealName {
			t.Errorf("%s was followed", h.Name)
		}
	}
}

// alike checks that two directories contain the same files.
func alike(t *testing.T, one, other string) {
	t.Helper()
	if text, err := exec.Command("diff", "-r", "--no-dereference", one, other).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

func FuzzCargo(f *testing.F) {
	for _, sends := range []func(io.Writer) error{
		entries(dirEntry("thing"), tar.Header{Name: "thing/a", Size: 5},
			tar.Header{Name: "thing/b", Linkname: "/etc", Typeflag: tar.TypeSymlink}),
		entries(dirEntry("thing"), tar.Header{Name: "thing/a", Size: 5},
			tar.Header{Name: "thing/b", Linkname: "thing/a", Typeflag: tar.TypeLink}),
		entries(tar.Header{Name: "../thing", Size: 5}),
		entries(dirEntry("thing"), tar.Header{Name: "thing/a", Size: minSpliceBytes + 1},
			tar.Header{Name: "thing/b", Size: 3 * readSize}),
		sparse,
	} {
		var b bytes.Buffer
		_ = sends(&b)
		f.Add(b.Bytes())
		f.Add(b.Bytes()[:b.Len()*2/3])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		sends := func(w io.Writer) error { _, err := w.Write(text); return err }
		err := Copy(t.Context(), Endpoint{In: liar{sends: sends}, Path: "/srv/thing"},
			Endpoint{Path: filepath.Join(dir, "into") + "/"}, false)
		other := filepath.Join(t.TempDir(), "into")
		if spliced := Copy(t.Context(), Endpoint{In: liar{sends: handed(sends)}, Path: "/srv/thing"},
			Endpoint{Path: other + "/"}, false); (err == nil) != (spliced == nil) {
			t.Errorf("%v in pieces, and %v through a pipe", err, spliced)
		}
		if err == nil {
			alike(t, filepath.Join(dir, "into"), other)
		}
		names, _ := os.ReadDir(dir)
		inner, _ := os.ReadDir(filepath.Join(dir, "into"))
		if len(names) > 1 || len(inner) > 1 || len(inner) == 1 && inner[0].Name() != "thing" {
			t.Errorf("%v, %v, %v", names, inner, err)
		}
		var out bytes.Buffer
		if err := openArchive(bytes.NewReader(text), "thing").forward(t.Context(), &out); err == nil {
			for again := tar.NewReader(&out); ; {
				h, err := again.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err == nil && h.Name == sealName {
					continue
				}
				if err != nil || !strings.HasPrefix(h.Name, "thing") || strings.Contains(h.Name, "..") &&
					strings.Contains("/"+h.Name+"/", "/../") || h.Mode&^0o777 != 0 {
					t.Fatalf("%+v, %v", h, err)
				}
			}
		}
	})
}
