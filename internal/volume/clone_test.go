package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/test/need"
)

// TestClone clones a tree with every type of file, on every file system that this machine can make.
func TestClone(t *testing.T) {
	for name, dir := range places(t) {
		t.Run(name, func(t *testing.T) {
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			zoo(t, from)
			write(t, filepath.Join(dir, ".to-new", "left", "by a killed run"), "x")
			made, err := Clone(t.Context(), from, to)
			if err != nil {
				t.Fatal(err)
			}
			if want := wanted(name); made.Method != want {
				t.Errorf("it was cloned by %s, want %s", made.Method, want)
			}
			same(t, from, to)
			live := filepath.Join(dir, "live")
			made, err = CloneLive(t.Context(), from, live, once)
			if err != nil || made.Method != wanted(name) {
				t.Fatal(made, err)
			}
			same(t, from, live)
			for _, path := range []string{to, live} {
				if err := Erase(path); err != nil {
					t.Error(err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

func wanted(place string) CopyMethod {
	switch place {
	case "btrfs subvolume":
		return Subvolume
	case "btrfs", "xfs", "btrfs nested":
		return Reflink
	}
	return Copied
}

// TestCloneLive changes the tree in every way after it has been copied for the first time.
func TestCloneLive(t *testing.T) {
	for name, dir := range places(t) {
		t.Run(name, func(t *testing.T) {
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			zoo(t, from)
			age()
			made, err := CloneLive(t.Context(), from, to, after(func() error { return change(from) }))
			if err != nil || made.Method != wanted(name) {
				t.Fatal(made, err)
			}
			same(t, from, to)
		})
	}
}

// TestFails: whatever goes wrong, no copy exists under the name.
func TestFails(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	write(t, filepath.Join(from, "x"), "x")
	_, err := CloneLive(t.Context(), from, to, after(func() error { return errors.New("it does not freeze") }))
	if err == nil || !strings.Contains(err.Error(), "does not freeze") {
		t.Error(err)
	}
	if _, err = CloneLive(t.Context(), from, to, after(func() error { return os.RemoveAll(from) })); err == nil {
		t.Error("what was removed meanwhile was cloned")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*to*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if _, err := CloneLive(t.Context(), from, to, once); err == nil {
		t.Error("what is not there was cloned")
	}
}

// TestCloneLinked: the path of a volume may be a symbolic link.
func TestCloneLinked(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "disk", "x"), "x")
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.Symlink("disk", from); err != nil {
		t.Fatal(err)
	}
	if _, err := CloneLive(t.Context(), from, to, once); err != nil {
		t.Fatal(err)
	}
	same(t, filepath.Join(dir, "disk"), to)
	if s, err := SizeOf(t.Context(), from); err != nil || s.Files != 1 {
		t.Errorf("%+v (%v)", s, err)
	}
}

// TestSameTick: a change that keeps size and mtime of a file is detected, even in the tick of the
// kernel's clock in which the file was examined.
func TestSameTick(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	file := filepath.Join(from, "x")
	for range 5 {
		write(t, file, "before")
		then := time.Unix(1_000_000_000, 0)
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
		_, err := CloneLive(t.Context(), from, to, after(func() error {
			return errors.Join(os.WriteFile(file, []byte("behind"), 0o644), os.Chtimes(file, then, then))
		}))
		if err != nil {
			t.Fatal(err)
		}
		same(t, from, to)
		if err := Erase(to); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMapped: a change through a memory-mapped page that was written before is also detected.
func TestMapped(t *testing.T) {
	t.Setenv("TMPDIR", "/var/tmp") // a file system in memory does not report it
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	file := filepath.Join(from, "x")
	write(t, file, strings.Repeat("x", 4096))
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page) //nolint:errcheck // the end of the test
	page[0] = 'a'
	age()
	if _, err := CloneLive(t.Context(), from, to, after(func() error { page[0] = 'b'; return nil })); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(to, "x"))
	if err != nil || text[0] != 'b' {
		t.Errorf("the copy begins with %q (%v)", text[0], err)
	}
}

// once is a FreezeFunc for a tree in which no process writes.
func once(ctx context.Context, do func(context.Context) error) error { return do(ctx) }

// after returns a FreezeFunc that runs a function first.
func after(first func() error) FreezeFunc {
	return func(ctx context.Context, do func(context.Context) error) error {
		if err := first(); err != nil {
			return err
		}
		return do(ctx)
	}
}

// age waits until no change is doubtful any more.
func age() { time.Sleep(2 * tick) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// zoo makes a tree with every type of file that this user may make.
func zoo(t *testing.T, dir string) {
	t.Helper()
	script := `set -eu; umask 022; mkdir -p "$1"; cd "$1"; chmod 750 .
echo text > a; ln a link-to-a; mkdir -p d/e/f; ln a d/e/other; ln -s ../nowhere d/symlink; mkfifo fifo; echo x > 'new
line'; echo y > -x; echo z > '*'; : > empty; chmod 4711 empty
truncate -s 64M sparse; echo middle | dd of=sparse bs=1 seek=33554432 conv=notrunc status=none
mkdir full; for i in $(seq 300); do echo $i > full/$i; done
mkdir will-go; echo x > will-go/x; mkdir will-move; echo x > will-move/x; mkdir turns; echo x > turns/x; echo x > file-turns
touch -d '2001-02-03 04:05:06.789' d/e; chmod 500 d/e/f; touch -h -d '2001-02-03' d/symlink`
	if need.Asked() {
		script += `
mknod whiteout c 0 0; chown 12345:54321 a d; chown -h 1:2 d/symlink
setfattr -n trusted.overlay.opaque -v y d; setfattr -n user.note -v hello a; setfattr -n user.dir -v x full
setfacl -m u:4321:rw a; setfacl -d -m g:777:rx d/e; setfacl -m u:5:rwx d/e
cp /bin/true able; setcap cap_net_raw+ep able; chown 12:13 full/7; chmod 2755 full`
	}
	sh(t, script, dir)
}

func sh(t *testing.T, script string, args ...string) {
	t.Helper()
	if out, err := exec.Command("/bin/sh", append([]string{"-c", script, "test"},
		args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// change changes the zoo in every way.
func change(dir string) error {
	script := `set -eu; cd "$1"
echo more >> a; rm link-to-a; ln d/e/other d/again; rm -r will-go; mv will-move moved; mkdir will-move; echo y > will-move/y
rm -r turns; echo file > turns; rm file-turns; mkdir file-turns; echo x > file-turns/x; chmod 700 full; rm full/1*; echo new > full/new
ln full/2 d/two; echo same-size > full/3; mv full/4 full/5; ln -sfn elsewhere d/symlink; touch -d 2002-02-02 d/e; rm fifo; : > fifo
echo end | dd of=sparse bs=1 seek=67108864 conv=notrunc status=none; mkdir -p deep/er/still; chmod 711 deep/er`
	if need.Asked() {
		script += `
setfattr -x trusted.overlay.opaque d; setfattr -n user.note -v other a; setfattr -x user.dir full; setfacl -b d/e; chown 9:9 deep full/20
setcap -r able; rm whiteout; mknod whiteout c 0 0; setfattr -n trusted.overlay.opaque -v y deep`
	}
	if out, err := exec.Command("/bin/sh", "-c", script, "test", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// same checks that two trees are the same in every respect.
func same(t *testing.T, a, b string) {
	t.Helper()
	x, y := describe(t, a), describe(t, b)
	for path, want := range x {
		if y[path] != want {
			t.Errorf("%s is\n  %s\nand of the copy\n  %s", path, want, y[path])
		}
		delete(y, path)
	}
	for path := range y {
		t.Errorf("%s is only in the copy", path)
	}
}

// describe returns all metadata of the files of a tree.
func describe(t *testing.T, root string) map[string]string {
	t.Helper()
	all, names := map[string]string{}, map[uint64][]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var s unix.Stat_t
		if err := unix.Lstat(path, &s); err != nil {
			return err
		}
		inside, _ := filepath.Rel(root, path)
		text := fmt.Sprintf("%o %d:%d %d %s", s.Mode, s.Uid, s.Gid, s.Rdev, time.Unix(s.Mtim.Unix()).UTC())
		switch {
		case e.Type().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d bytes %x sparse %v", s.Size, sum(content), s.Blocks*512 < s.Size/2)
			names[s.Ino] = append(names[s.Ino], inside)
		case e.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(path)
			text += " -> " + target
		}
		all[inside] = text + attributes(path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range names {
		for _, name := range same {
			all[name] += fmt.Sprint(" names ", same)
		}
	}
	return all
}

func sum(content []byte) (h uint64) {
	for _, b := range content {
		h = h*1099511628211 + uint64(b) + 1
	}
	return h
}

func attributes(path string) string {
	list := make([]byte, 4096)
	n, _ := unix.Llistxattr(path, list)
	names := strings.Split(string(list[:max(n, 0)]), "\x00")
	slices.Sort(names)
	text := ""
	for _, name := range names {
		value := make([]byte, 4096)
		if n, err := unix.Lgetxattr(path, name, value); name != "" && err == nil {
			text += fmt.Sprintf(" %s=%x", name, value[:n])
		}
	}
	return text
}

// places returns directories on several file systems: that of temporary files and, in integration
// tests, some that are made for it. They are mounted in a namespace of this test alone, so that
// nothing of them stays if it is killed.
func places(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"here": t.TempDir()}
	if !need.Asked() {
		return all
	}
	tmpfs := t.TempDir()
	if err := unix.Mount("orrery-test", tmpfs, "tmpfs", 0, "size=300m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(tmpfs, unix.MNT_DETACH) })
	all["xfs"] = image(t, "xfs", "mkfs.xfs", "-q", "-m", "reflink=1")
	btrfs := image(t, "btrfs", "mkfs.btrfs", "-q")
	all["btrfs"] = filepath.Join(btrfs, "plain")
	for _, kind := range []string{"subvolume", "nested"} {
		all["btrfs "+kind] = filepath.Join(btrfs, kind)
	}
	sh(t, `set -e; cd "$1"; mkdir plain subvolume nested; for d in subvolume nested; do btrfs subvolume create $d/from; done; btrfs subvolume create nested/from/inner`,
		btrfs)
	all["tmpfs"] = tmpfs
	return all
}
