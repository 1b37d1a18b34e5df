package image

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/host/waits"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/tree"
)

func sayTo(t *testing.T) func(string) {
	begun := time.Now()
	return func(text string) { t.Logf("%5.1fs %s", time.Since(begun).Seconds(), text) }
}

func sh(script string) host.Command { return host.Command{Args: []string{"sh", "-ec", script}} }

// TestBuildLayer builds a role layer with everything that roles consist of, and inspects the
// result.
func TestBuildLayer(t *testing.T) {
	s := realState(t)
	base := realBase(t, s)
	l := testLayer(t, s, base)
	var log bytes.Buffer
	say := sayTo(t)
	err := s.BuildLayer(t.Context(), l, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
		if err := in.Put(ctx, host.File{Path: "/opt/hello/world", Content: []byte("hello\n"), Mode: 0o640,
			Owner: "root:adm"}); err != nil {
			return err
		}
		say("apt")
		if err := s.Cache.Install(ctx, in, distro.Debian, []string{"tree", "python3-venv"}, &log); err != nil {
			return err
		}
		for _, script := range []string{
			"python3 -m venv /opt/orrery/venv && /opt/orrery/venv/bin/pip install six",
			"useradd -m olga && runuser -u olga -- touch /home/olga/x /tmp/x; rm /etc/motd",
			"rm -rf /usr/share/base-files && mkdir /usr/share/base-files",
			"touch /var/tmp/left /tmp/left /run/left /var/log/left.log && ! test -e /sys/kernel",
			"cp /bin/true /opt/able && python3 -c 'import os, struct; os.setxattr(\"/opt/able\", \"security.capability\", struct.pack(\"<5I\", 0x02000001, 1 << 13, 0, 0, 0))'",
			`test "$(id -u)" = 0 && getent hosts localhost && test "$(stat -c %a /tmp)" = 1777`,
		} {
			command := sh(script)
			command.Stdout, command.Stderr = &log, &log
			say(script)
			if err := in.Run(ctx, command); err != nil {
				return err
			}
		}
		var run *host.RunError
		if err := in.Run(ctx, sh("echo oh dear >&2; exit 7")); !errors.As(err, &run) || run.Status != 7 ||
			!strings.Contains(run.Output, "oh dear") {
			t.Errorf("a failing command gives %v", err)
		}
		return nil
	}, say)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	say("done")
	r, err := s.Record(l.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Packages, func(p string) bool { return strings.HasPrefix(p, "tree=") }) ||
		!slices.ContainsFunc(r.Python, func(p string) bool { return strings.HasPrefix(p, "six==") }) {
		t.Errorf("recorded packages %v, %v", r.Packages, r.Python)
	}
	tree := s.Tree(l.Digest)
	for path, want := range map[string]string{
		"usr/bin/tree": "file", "opt/hello/world": "file", "home/olga/x": "file", "opt/orrery/venv/bin/python3": "link",
		"etc/motd": "whiteout", "usr/share/base-files": "opaque", "usr/sbin/policy-rc.d": "none", "var/tmp/left": "none",
		"tmp/left": "none", "run/left": "none", "run/orrery-build": "none", "var/log/left.log": "none",
		"etc/resolv.conf": "none", "etc/orrery/hosts": "none", "var/lib/apt/lists/lock": "none",
	} {
		if got := kindOf(filepath.Join(tree, path)); got != want {
			t.Errorf("%s: %s instead of %s", path, got, want)
		}
	}
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(tree, "home/olga/x"), &st); err != nil || st.Uid != 1000 {
		t.Errorf("olga's file belongs to %d, %v", st.Uid, err)
	}
	attrs, err := attributesOf(filepath.Join(tree, "opt/able"))
	if err != nil || len(attrs) != 1 || len(attrs[capability]) != 20 {
		t.Errorf("attributes %v, %v: the capability is not plain", attrs, err)
	}
	if err := s.Verify(t.Context(), l.Digest); err != nil {
		t.Error(err)
	}
	t.Logf("%s, %d files, built in %.1f s", formatSize(uint64(r.Size)), r.Files, r.Seconds)
	again := func(context.Context, host.Runner) error { return errors.New("built again") }
	if err := s.BuildLayer(t.Context(), l, site.Mirror{}, again, say); err != nil {
		t.Error(err)
	}
	nothingLeft(t, s)
}

func attributesOf(path string) (map[string][]byte, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return tree.Attributes(int(dir.Fd()), filepath.Base(path))
}

func kindOf(path string) string {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return "none"
	}
	attrs, _ := attributesOf(path)
	switch {
	case st.Mode&syscall.S_IFMT == syscall.S_IFCHR && st.Rdev == 0 && st.Uid == 0:
		return "whiteout"
	case attrs["trusted.overlay.opaque"] != nil:
		return "opaque"
	case st.Mode&syscall.S_IFMT == syscall.S_IFLNK:
		return "link"
	case st.Mode&syscall.S_IFMT == syscall.S_IFREG:
		return "file"
	}
	return "other"
}

// nothingLeft checks that no build has left anything behind.
func nothingLeft(t *testing.T, s *Store) {
	t.Helper()
	for _, dir := range []string{s.stagings, filepath.Join(s.state, "build")} {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			t.Errorf("%s holds %v", dir, entries)
		}
	}
	if pids := processesOf(s); len(pids) > 0 {
		t.Errorf("processes are left: %v", pids)
	}
	if found, _ := filepath.Glob("/sys/fs/cgroup/*/orrery-build-*" + mark(s) + "*"); len(found) > 0 {
		t.Errorf("cgroups are left: %v", found)
	}
	if mounts, err := mountsIn(s.state); err != nil || len(mounts) > 0 {
		t.Errorf("mounts are left: %v, %v", mounts, err)
	}
}

// processesOf returns the LXC processes of a store's scratch containers, and the processes in them.
func processesOf(s *Store) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if len(line) == 0 {
			continue // dead, and not yet reaped by this machine's init
		}
		group, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		if bytes.Contains(line, []byte(filepath.Join(s.state, "build"))) && !bytes.Contains(line, []byte("go")) ||
			bytes.Contains(group, []byte(mark(s))) {
			found = append(found, filepath.Base(dir)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}

// mark is the part that the names of all scratch containers of a store have in common.
func mark(s *Store) string { return strings.TrimPrefix(containerName(s, ""), "-") }

// TestFailingFill: a role's error is returned, and nothing is left.
func TestFailingFill(t *testing.T) {
	s := realState(t)
	l := testLayer(t, s, realBase(t, s))
	mistake := problem.New(problem.Failed, "role x: step y")
	err := s.BuildLayer(t.Context(), l, site.Mirror{}, func(context.Context, host.Runner) error { return mistake },
		sayTo(t))
	if !errors.Is(err, mistake) {
		t.Errorf("got %v", err)
	}
	err = s.BuildLayer(t.Context(), l, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
		return s.Cache.Install(ctx, in, distro.Debian, []string{"no-such-package"}, nil)
	}, sayTo(t))
	var p *problem.Problem
	if !errors.As(err, &p) || p.Cure == "" || !strings.Contains(err.Error(), "Unable to locate package no-such-package") {
		t.Errorf("got %v", err)
	}
	t.Log(err)
	nothingLeft(t, s)
}

// TestInterrupt cancels a build while a command runs.
func TestInterrupt(t *testing.T) {
	s := realState(t)
	l := testLayer(t, s, realBase(t, s))
	ctx, cancel := context.WithCancel(t.Context())
	err := s.BuildLayer(ctx, l, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
		time.AfterFunc(200*time.Millisecond, cancel)
		return in.Run(ctx, sh("sleep 600"))
	}, sayTo(t))
	if problem.ExitCode(err) != int(problem.Interrupted) {
		t.Errorf("got %v", err)
	}
	nothingLeft(t, s)
}

// TestBuildOnce: several builders of the same layer build it once.
func TestBuildOnce(t *testing.T) {
	s := realState(t)
	l := testLayer(t, s, realBase(t, s))
	var fills, waiters atomic.Int32
	ctx := waits.WithReporter(t.Context(), func(text string) {
		if strings.HasPrefix(text, "waits for the lock of layer "+l.Digest) {
			waiters.Add(1)
		}
	})
	var builders sync.WaitGroup
	for range 3 {
		builders.Go(func() {
			err := Open(s.state).BuildLayer(ctx, l, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
				fills.Add(1)
				return in.Run(ctx, sh("sleep 2; echo once >/opt/once")) // longer than waiting takes to be reported
			}, sayTo(t))
			if err != nil {
				t.Error(err)
			}
		})
	}
	builders.Wait()
	if fills.Load() != 1 || waiters.Load() != 2 {
		t.Errorf("%d builders built it and %d waited", fills.Load(), waiters.Load())
	}
	nothingLeft(t, s)
}

// TestBuildSideBySide builds different layers at once with the same package cache.
func TestBuildSideBySide(t *testing.T) {
	s := realState(t)
	base := realBase(t, s)
	var builders sync.WaitGroup
	for i, pkg := range []string{"tree", "file"} {
		t.Run(pkg, func(t *testing.T) {
			l := testLayer(t, s, base)
			builders.Go(func() {
				err := Open(s.state).BuildLayer(context.Background(), l, site.Mirror{},
					func(ctx context.Context, in host.Runner) error {
						return s.Cache.Install(ctx, in, distro.Debian, []string{pkg}, os.Stderr)
					}, func(string) {})
				if err != nil {
					t.Errorf("builder %d: %v", i, err)
				}
			})
			if i == 1 {
				builders.Wait()
			}
		})
	}
	builders.Wait()
}

const killedState = "ORRERY_TEST_KILLED" // in the environment of the builder that will be killed

// TestKilledBuilder kills a builder in the middle of a build. What it built must not count as a
// layer, and no process may remain. The next builder must clean up and build.
func TestKilledBuilder(t *testing.T) {
	s := realState(t)
	base := realBase(t, s)
	l := testLayer(t, s, base)
	if os.Getenv(killedState) != "" {
		s.BuildLayer(t.Context(), l, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
			c := sh("sleep 1000 & echo half >/opt/half; echo filling; sleep 1000")
			c.Stdout = os.Stdout
			return in.Run(ctx, c)
		}, func(string) {})
		t.Fatal("not killed")
	}
	builder := exec.Command(os.Args[0], "-test.run=^TestKilledBuilder$")
	builder.Env = append(os.Environ(), killedState+"=1")
	out, err := builder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := builder.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "filling" {
			break
		}
	}
	if pids := processesOf(s); len(pids) < 3 {
		t.Errorf("only %v run while it builds", pids)
	}
	builder.Process.Kill()
	builder.Wait()
	var pids []string
	for range 100 {
		if pids = processesOf(s); len(pids) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(pids) > 0 {
		t.Errorf("two seconds after its end there are still %v", pids)
	}
	if whole, err := s.Layers(); err != nil || whole[l.Digest] {
		t.Errorf("the half layer is in the store: %v", err)
	}
	err = s.BuildLayer(t.Context(), l, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
		return in.Run(ctx, sh("! test -e /opt/half; echo whole >/opt/whole"))
	}, sayTo(t))
	if err != nil {
		t.Error(err)
	}
	nothingLeft(t, s)
}

// TestImportedApplication builds a node's base from an image for application containers: Debian
// without an init system.
func TestImportedApplication(t *testing.T) {
	s := realState(t)
	realBase(t, s)
	file := filepath.Join(t.TempDir(), "debian.tar")
	out, err := exec.Command("mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "bookworm", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l := importOf(file, fmt.Sprint(time.Now()))
	t.Cleanup(func() { s.drop(l.Digest) })
	if err := s.BuildBase(t.Context(), l, site.Mirror{}, sayTo(t)); err != nil {
		t.Fatal(err)
	}
	n := boot(t, s.Tree(l.Digest))
	n.wait(t)
	nothingLeft(t, s)
}
