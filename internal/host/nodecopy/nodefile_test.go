package nodecopy

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/tree"
)

// A viewed node has a directory of this host as its root. Its tar depends on the embedded Runner.
type viewed struct {
	host.Runner
	top   string
	owned func(id uint32) bool
}

func (v viewed) View() (*tree.Root, func(id uint32) bool, error) {
	root, err := tree.Open(v.top)
	return root, v.owned, err
}

// asked is a node that returns errAsked when its tar is run.
type asked struct{ host.Runner }

var errAsked = errors.New("tar was asked")

func (asked) Run(context.Context, host.Command) error { return errAsked }

func everybody(uint32) bool { return true }

// TestSeen checks that a single file of a node is copied with the same result as by tar, without
// running anything in the node.
func TestSeen(t *testing.T) {
	top, into := t.TempDir(), t.TempDir()
	when := time.Date(2020, 1, 2, 3, 4, 5, 600, time.UTC)
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<20+1)
	mustDo(t, os.MkdirAll(filepath.Join(top, "srv"), 0o700))
	mustDo(t, os.WriteFile(filepath.Join(top, "srv/thing"), text, 0o600))
	mustDo(t, os.Chmod(filepath.Join(top, "srv/thing"), 0o751|os.ModeSetuid))
	mustDo(t, os.Chtimes(filepath.Join(top, "srv/thing"), when, when))
	mustDo(t, os.Symlink("../outside", filepath.Join(into, "thing")))
	moved := int64(0)
	from := Endpoint{In: viewed{asked{}, top, everybody}, Path: "/srv/thing", Moved: func(n int64) { moved += n }}
	for _, to := range []Endpoint{{Path: into}, {Path: filepath.Join(into, "other")}, {Path: into}} {
		mustDo(t, Copy(t.Context(), from, to, false))
	}
	for _, name := range []string{"thing", "other"} {
		var st unix.Stat_t
		mustDo(t, unix.Lstat(filepath.Join(into, name), &st))
		got, err := os.ReadFile(filepath.Join(into, name))
		if err != nil || !bytes.Equal(got, text) || st.Mode != unix.S_IFREG|0o751 || int(st.Uid) != os.Geteuid() ||
			!when.Equal(time.Unix(st.Mtim.Unix())) {
			t.Errorf("%s: mode %o of %d, %d bytes: %v", name, st.Mode, st.Uid, len(got), err)
		}
	}
	if want := 3 * int64(len(text)); moved != want {
		t.Errorf("%d bytes are told, of %d", moved, want)
	}
	if names, _ := os.ReadDir(into); len(names) != 2 {
		t.Errorf("there are %v", names)
	}
}

// TestSeenHostile checks that all but regular files that the node's root may read are left to the
// node's tar, which has only the rights of that root. Nothing may block.
func TestSeenHostile(t *testing.T) {
	top := t.TempDir()
	mustDo(t, os.WriteFile(filepath.Join(top, "file"), []byte("of the host"), 0o666))
	mustDo(t, os.Symlink("file", filepath.Join(top, "link")))
	mustDo(t, os.Symlink("/etc/passwd", filepath.Join(top, "passwd")))
	mustDo(t, os.Symlink(top, filepath.Join(top, "top")))
	mustDo(t, os.Mkdir(filepath.Join(top, "dir"), 0o755))
	mustDo(t, unix.Mkfifo(filepath.Join(top, "fifo"), 0o666))
	nobody := func(uint32) bool { return false }
	for name, node := range map[string]struct {
		viewed
		path string
	}{
		"another's":    {viewed{asked{}, top, nobody}, "/file"},
		"a link":       {viewed{asked{}, top, everybody}, "/link"},
		"a link out":   {viewed{asked{}, top, everybody}, "/passwd"},
		"through one":  {viewed{asked{}, top, everybody}, "/top/file"},
		"a named pipe": {viewed{asked{}, top, everybody}, "/fifo"},
		"a directory":  {viewed{asked{}, top, everybody}, "/dir"},
		"nothing":      {viewed{asked{}, top, everybody}, "/none"},
		"a device":     {viewed{asked{}, "/dev", everybody}, "/zero"},
		"the kernel's": {viewed{asked{}, "/proc", everybody}, "/cpuinfo"},
		"not running":  {viewed{asked{}, filepath.Join(top, "none"), everybody}, "/file"},
	} {
		into := t.TempDir()
		if err := Copy(t.Context(), Endpoint{In: node.viewed, Path: node.path}, Endpoint{Path: into}, false); !errors.Is(err,
			errAsked) {
			t.Errorf("%s: %v", name, err)
		}
		if names, _ := os.ReadDir(into); len(names) > 0 {
			t.Errorf("%s: there are %v", name, names)
		}
	}
}

// TestSeenChanging checks that a file that changes while it is read is not copied, and that no more
// is read than its original size.
func TestSeenChanging(t *testing.T) {
	const size = 20 << 20
	for name, change := range map[string]func(f *os.File){
		"longer":    func(f *os.File) { f.Write(make([]byte, size)) },
		"shorter":   func(f *os.File) { f.Truncate(1) },
		"exchanged": func(f *os.File) { os.Remove(f.Name()) },
	} {
		top, into, moved := t.TempDir(), t.TempDir(), int64(0)
		f, err := os.OpenFile(filepath.Join(top, "thing"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		mustDo(t, err)
		defer f.Close()
		_, err = f.Write(make([]byte, size))
		mustDo(t, err)
		from := Endpoint{In: viewed{asked{}, top, everybody}, Path: "/thing", Moved: func(n int64) {
			moved += n
			change(f)
		}}
		err = Copy(t.Context(), from, Endpoint{Path: into}, false)
		if err == nil || !strings.Contains(err.Error(), "it changed while it was read") {
			t.Errorf("%s: %v", name, err)
		}
		if moved > size {
			t.Errorf("%s: %d bytes of %d were read", name, moved, size)
		}
		if names, _ := os.ReadDir(into); len(names) > 0 {
			t.Errorf("%s: %v is there", name, names)
		}
	}
}

// TestSeenInterrupted checks that an interrupted copy leaves no files, and that an unreachable node
// does not block it.
func TestSeenInterrupted(t *testing.T) {
	top, into := t.TempDir(), t.TempDir()
	mustDo(t, os.WriteFile(filepath.Join(top, "thing"), make([]byte, 20<<20), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	from := Endpoint{In: viewed{asked{}, top, everybody}, Path: "/thing", Moved: func(int64) { cancel() }}
	if err := Copy(ctx, from, Endpoint{Path: into}, false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	never := make(chan struct{})
	defer close(never)
	from.In = viewed{asked{}, top, func(uint32) bool { cancel(); <-never; return true }}
	if err := Copy(ctx, from, Endpoint{Path: into}, false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if names, _ := os.ReadDir(into); len(names) > 0 {
		t.Errorf("%v are left", names)
	}
}
