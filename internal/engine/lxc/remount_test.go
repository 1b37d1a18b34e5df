package lxc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/host"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// remounted is a running node whose volumes change.
type remounted struct {
	*testing.T
	ground
	n *spec.Node
	c container
}

func remountOf(t *testing.T, g ground, n *spec.Node, mounts ...spec.Mount) *remounted {
	r := &remounted{t, g, n, g.container(engine.RefOf(n))}
	n.Mounts = mounts
	must(t, g.Create(t.Context(), n))
	t.Cleanup(func() { must(t, g.Destroy(context.Background(), engine.RefOf(n))) })
	must(t, g.Start(t.Context(), engine.RefOf(n)))
	return r
}

func at(volume, path string) spec.Mount {
	return spec.Mount{Volume: volume, Path: path, Owner: "root:root", Mode: 0o755}
}

func (r *remounted) to(mounts ...spec.Mount) {
	r.Helper()
	must(r.T, r.try(mounts...))
	r.wantSeen(mounts...)
}

func (r *remounted) try(mounts ...spec.Mount) error {
	changed := *r.n
	changed.Mounts = mounts
	return r.Remount(r.Context(), &changed)
}

func (r *remounted) sh(script string) string {
	r.Helper()
	var out bytes.Buffer
	must(r.T, r.Runner(r.c.ref).Run(r.Context(), host.Command{Args: []string{"sh", "-c", script}, Stdout: &out}))
	return strings.TrimSpace(out.String())
}

func (r *remounted) dir(m spec.Mount) string { return volume.Path(r.Dirs, r.n.Site, r.n.Name, m) }

// wantSeen compares what is on record, and what the kernel's tables have of it in all namespaces of the node.
func (r *remounted) wantSeen(mounts ...spec.Mount) {
	r.Helper()
	rec, err := r.c.Read()
	must(r.T, err)
	if !slices.Equal(rec.Mounts, mounts) {
		r.Errorf("on record: %+v, want %+v", rec.Mounts, mounts)
	}
	node := fmt.Sprintf("%s/%d", r.n.Site, r.n.ID)
	volumes, err := filepath.Glob(filepath.Join(r.Dirs.Volumes(r.n.Site), "*", r.n.Name))
	must(r.T, err)
	for _, dir := range volumes {
		writers, err := enginetest.Writers(dir)
		must(r.T, err)
		want := slices.ContainsFunc(mounts, func(m spec.Mount) bool { return m.Copy == "" && r.dir(m) == dir })
		if got := slices.Contains(writers, node); got != want {
			r.Errorf("%s: mounted for writing: %t, want %t", dir, got, want)
		}
	}
	for _, m := range mounts {
		if m.Copy == spec.NoCopy {
			continue
		}
		r.wantSame(r.dir(m), m.Path)
	}
	entries, err := os.ReadDir(r.c.Bind(""))
	must(r.T, err)
	if have := len(mounts); len(entries) > have+1 {
		r.Errorf("%d directories to bind are left of %d mounts", len(entries), have)
	}
}

// wantSame tells whether the node sees a directory of the host at a path.
func (r *remounted) wantSame(dir, path string) {
	r.Helper()
	var outside, inside unix.Stat_t
	must(r.T, unix.Stat(dir, &outside))
	must(r.T, unix.Stat(fmt.Sprintf("/proc/%d/root%s", r.c.init(), path), &inside))
	if outside.Dev != inside.Dev || outside.Ino != inside.Ino {
		r.Errorf("the node does not see %s at %s", dir, path)
	}
}

// mountedTimes counts the mounts at a path in the node.
func (r *remounted) mountedTimes(path string) (n int) {
	r.Helper()
	table, err := rootfs.MountsOf(fmt.Sprint(r.c.init()))
	must(r.T, err)
	for _, m := range table {
		if m.At == path {
			n++
		}
	}
	return n
}

func TestRemount(t *testing.T) {
	g := newGround(t)
	for i, c := range []struct {
		name string
		test func(*testing.T, ground, *spec.Node)
	}{
		{"Privileged", remountPrivileged},
		{"ServicesWithMountsOfTheirOwn", remountServices},
		{"Nested", remountNested},
		{"Killed", remountKilled},
		{"Links", remountLinks},
		{"OthersMounts", remountOthers},
		{"BusyElsewhere", remountBusyElsewhere},
		{"Reboot", remountReboot},
		{"Removed", remountRemoved},
		{"None", remountNone},
		{"Source", remountSource},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, g, g.Node(fmt.Sprint("vol", i), 120+i)) })
	}
}

func remountPrivileged(t *testing.T, g ground, n *spec.Node) {
	n.Privileged = true
	r := remountOf(t, g, n, at("a", "/srv/data"))
	r.sh("echo a > /srv/data/x; chown nobody /srv/data/x")
	r.to(at("b", "/srv/data"), at("c", "/opt/made/for/it"))
	r.sh("test ! -e /srv/data/x && touch /opt/made/for/it/y")
	r.to(at("a", "/srv/data"))
	if got := r.sh("stat -c '%U %u' /srv/data/x"); got != "nobody 65534" {
		t.Errorf("owner: %s", got)
	}
	r.to()
}

// remountServices: services with a mount namespace of their own have copies of the node's mounts,
// and of parts of them.
func remountServices(t *testing.T, g ground, n *spec.Node) {
	r := remountOf(t, g, n, at("a", "/srv/data"))
	r.sh("mkdir /srv/data/part /opt/part")
	r.sh("systemd-run --unit=slave -p PrivateTmp=yes -p ProtectSystem=strict -p ReadWritePaths=/srv/data sleep infinity")
	r.sh("systemd-run --unit=alone unshare --mount --propagation private sleep infinity")
	r.sh("mount --bind /srv/data/part /opt/part")
	for r.sh("cat /proc/*/comm | grep -c '^sleep$'") != "2" {
		time.Sleep(20 * time.Millisecond)
	}
	r.to()
	r.to(at("b", "/srv/data"))
	main := r.sh("systemctl show -p MainPID --value slave")
	if got := r.sh("grep -c ' /srv/data ' /proc/" + main + "/mountinfo"); got == "0" {
		t.Error("the service does not see what its node was given")
	}
	r.to(at("a", "/srv/data"))
	r.sh("systemctl is-active slave alone")
}

// remountNested: a volume inside another one stays inside it.
func remountNested(t *testing.T, g ground, n *spec.Node) {
	outer, inner := at("a", "/srv"), at("b", "/srv/in")
	r := remountOf(t, g, n, inner, outer)
	r.wantSeen(inner, outer)
	r.sh("echo b > /srv/in/x")
	r.to(at("c", "/srv"), inner)
	r.sh("test -e /srv/in/x")
	r.to(inner)
	r.sh("test -e /srv/in/x")
	r.to(outer, inner)
	r.sh("test -e /srv/in/x")
	r.to()
}

// remountKilled: whatever a killed run has left, the next run reaches the same result.
func remountKilled(t *testing.T, g ground, n *spec.Node) {
	a, b := at("a", "/srv/data"), at("b", "/srv/data")
	r := remountOf(t, g, n, a)
	both := func(mounts ...spec.Mount) {
		rec, err := r.c.Read()
		must(t, err)
		rec.Mounts = mounts
		must(t, r.c.Write(rec))
	}
	umount := func(pid int, path string) {
		must(t, rootfs.InMountNamespace(pid, func(func() ([]rootfs.MountInfo, error)) error { return unix.Unmount(path, 0) }))
	}
	for name, left := range map[string]func(){
		"only on record":         func() { both(a, b) },
		"gone from the node":     func() { both(a, b); umount(r.c.init(), "/srv/data") },
		"gone, but in the binds": func() { both(a, b); umount(r.c.init(), "/srv/data"); umount(r.c.monitor(), r.bindOf(a)) },
		"there, on record late":  func() { r.to(b); both(a, b) },
	} {
		for _, goal := range []spec.Mount{a, b} {
			r.to(a)
			left()
			if err := r.try(goal); err != nil {
				t.Errorf("%s, to %s: %v", name, goal.Volume, err)
			}
			r.wantSeen(goal)
			if n := r.mountedTimes("/srv/data"); n != 1 {
				t.Errorf("%s, to %s: %d mounts over each other", name, goal.Volume, n)
			}
		}
	}
	both(a, b)
	must(t, g.Stop(t.Context(), r.c.ref))
	must(t, g.Start(t.Context(), r.c.ref))
	if n := r.mountedTimes("/srv/data"); n != 1 {
		t.Errorf("after a start: %d mounts over each other", n)
	}
	r.wantSame(r.dir(b), "/srv/data")
	r.to(a)
}

func (r *remounted) bindOf(m spec.Mount) string {
	return r.Volumes(r.n, []spec.Mount{m})[0].Bind
}

// remountLinks: no link that the node has made leads a mount elsewhere.
func remountLinks(t *testing.T, g ground, n *spec.Node) {
	a := at("a", "/srv/data")
	r := remountOf(t, g, n, a)
	r.sh("ln -s /etc /srv/last; mkdir /opt/real; ln -s ../opt /srv/first; ln -s /../../../../.. /srv/up")
	for _, path := range []string{"/srv/last", "/srv/first/real", "/srv/up/etc", "/srv/up/made"} {
		err := r.try(a, at("b", path))
		if problem.ExitCode(err) != int(problem.Failed) {
			t.Errorf("%s: %v", path, err)
		}
		r.wantSeen(a)
	}
	if r.sh("ls -d /made 2>/dev/null; true") != "" {
		t.Error("a directory was made through a link")
	}
	if _, err := os.Stat("/made"); err == nil {
		t.Error("a directory was made on the host")
	}
	r.sh("echo > /srv/file")
	if err := r.try(at("b", "/srv/file")); err == nil {
		t.Error("a volume was mounted on a file")
	}
	r.wantSeen(a) // although it had been unmounted
}

// remountOthers: Remount does not unmount what the node's root has mounted over a volume.
func remountOthers(t *testing.T, g ground, n *spec.Node) {
	a := at("a", "/srv/data")
	r := remountOf(t, g, n, a)
	r.sh("mkdir /srv/data/sub; mount -t tmpfs tmpfs /srv/data/sub")
	if err := r.try(); err == nil || !strings.Contains(err.Error(), "the mount at /srv/data/sub") {
		t.Errorf("a mount inside: %v", err)
	}
	r.sh("umount /srv/data/sub; mount -t tmpfs tmpfs /srv/data")
	if err := r.try(); err == nil || !strings.Contains(err.Error(), "mounted over") {
		t.Errorf("a mount over it: %v", err)
	}
	r.sh("umount /srv/data; mkdir -p /opt/x; mount -t tmpfs tmpfs /opt/x")
	if err := r.try(a, at("b", "/opt/x")); err == nil ||
		!strings.Contains(err.Error(), "something else is mounted at /opt/x") {
		t.Errorf("a mount where a volume shall be: %v", err)
	}
	r.wantSeen(a)
	r.sh("umount /opt/x")
	r.to(at("b", "/opt/x"))
}

// remountBusyElsewhere: a process that uses a volume as its working directory, or maps a file of
// it, keeps the volume busy in whatever mount namespace the process is.
func remountBusyElsewhere(t *testing.T, g ground, n *spec.Node) {
	a := at("a", "/srv/data")
	r := remountOf(t, g, n, a)
	r.sh("cp /bin/sleep /srv/data/dozer")
	for name, run := range map[string]string{
		"directory": "cd /srv/data && exec sleep infinity", "program": "exec /srv/data/dozer infinity",
		"file": "exec 8</srv/data/dozer; exec sleep infinity",
	} {
		for _, space := range []string{"PrivateTmp=no", "PrivateTmp=yes"} {
			r.sh("systemd-run --collect --unit=user -p " + space + " sh -c '" + run + "'")
			// Before it is the program that holds the volume, the process is systemd's and then the
			// shell.
			for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
				if comm := r.sh("cat /proc/$(systemctl show -p MainPID --value user)/comm"); comm == "sleep" || comm == "dozer" {
					break
				}
			}
			err := r.try()
			if problem.ExitCode(err) != int(problem.Failed) || !strings.Contains(fmt.Sprint(err), "sleep (process") &&
				!strings.Contains(fmt.Sprint(err), "dozer (process") {
				t.Errorf("%s, %s: %v", name, space, err)
			}
			r.wantSeen(a)
			r.sh("systemctl stop user")
		}
	}
	r.to()
}

// remountReboot: a node that reboots by itself gets the recorded volumes, not those that it had
// when LXC started it.
func remountReboot(t *testing.T, g ground, n *spec.Node) {
	r := remountOf(t, g, n, at("a", "/srv/data"), at("d", "/opt/gone"))
	r.to(at("b", "/srv/data"), at("c", "/opt/more"))
	r.sh("echo b > /srv/data/x")
	before := r.c.init()
	_ = r.Runner(r.c.ref).Run(t.Context(), host.Command{Args: []string{"systemctl", "reboot"}})
	for begun := time.Now(); r.c.init() == before || r.c.init() == 0; time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			t.Fatal("the node does not come back")
		}
	}
	record, err := r.c.Read()
	must(t, err)
	r.c.awaitSystemd(t.Context(), record)
	if got := r.sh("cat /srv/data/x"); got != "b" {
		t.Errorf("on the volume: %q", got)
	}
	r.wantSeen(at("b", "/srv/data"), at("c", "/opt/more"))
	r.to(at("a", "/srv/data"))
}

// remountRemoved: a volume whose directory was removed can still be unmounted.
func remountRemoved(t *testing.T, g ground, n *spec.Node) {
	a := at("a", "/srv/data")
	r := remountOf(t, g, n, a)
	must(t, os.RemoveAll(r.dir(a)))
	r.to()
	if r.mountedTimes("/srv/data") != 0 {
		t.Error("it is still mounted")
	}
}

// remountNone: a volume that the node cannot have now is recorded but not mounted, even after a
// restart.
func remountNone(t *testing.T, g ground, n *spec.Node) {
	a := at("a", "/srv/data")
	a.Exclusive = true
	none := a
	none.Copy, none.Release = spec.NoCopy, 7
	r := remountOf(t, g, n, a)
	r.sh("echo a > /srv/data/x")
	r.to(none)
	if r.mountedTimes("/srv/data") != 0 {
		t.Error("it is still mounted")
	}
	must(t, g.Stop(t.Context(), r.c.ref))
	must(t, g.Start(t.Context(), r.c.ref))
	if r.mountedTimes("/srv/data") != 0 {
		t.Error("it is mounted after a restart")
	}
	r.to(a)
	r.sh("test -e /srv/data/x")
}

// remountSource: a volume may be the root of a file system of its own.
func remountSource(t *testing.T, g ground, n *spec.Node) {
	source := filepath.Join(g.Dirs.State, "a source")
	must(t, os.MkdirAll(source, 0o700))
	disk := filepath.Join(g.Dirs.State, "disk")
	must(t, os.WriteFile(disk, nil, 0o600))
	must(t, os.Truncate(disk, 16<<20))
	must(t, host.Local{Name: "host"}.Run(t.Context(), host.Command{Args: []string{"mkfs.ext4", "-q", disk}}))
	must(t, host.Local{Name: "host"}.Run(t.Context(), host.Command{Args: []string{"mount", "-o", "loop", disk, source}}))
	t.Cleanup(func() { must(t, unix.Unmount(source, 0)) })
	m, whole := at("a", "/srv/data"), at("w", "/srv/whole")
	m.Source, whole.Source, whole.Shared = source, source, true
	r := remountOf(t, g, n)
	r.to(m)
	r.sh("echo x > /srv/data/x")
	r.to(m, whole)
	r.sh("test -e /srv/whole/" + n.Name + "/x")
	r.to(m) // it is inside the other volume, and stays
	r.sh("test -e /srv/data/x")
	r.to()
}

func TestSweepThawsWhatWeFroze(t *testing.T) {
	g := newGround(t)
	ours, theirs := remountOf(t, g, g.Node("ours", 140)), remountOf(t, g, g.Node("theirs", 141))
	must(t, g.Freeze(t.Context(), ours.c.ref))
	must(t, theirs.c.group().SetFrozen(true))
	must(t, g.Sweep(t.Context(), testSite))
	if ours.c.group().Frozen() {
		t.Error("a node that a killed run froze stays frozen")
	}
	if !theirs.c.group().Frozen() {
		t.Error("a node that somebody else froze goes on")
	}
	if _, err := os.Stat(ours.c.freezingFile()); err == nil {
		t.Error("the mark stays")
	}
	must(t, g.Thaw(t.Context(), theirs.c.ref))
}
