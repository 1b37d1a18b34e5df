package image

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// hostileArchive is an environment variable of the builder that a test starts. It names the archive
// to build from.
const hostileArchive = "ORRERY_TEST_HOSTILE"

// TestHostilePackages: a package that is set up while a base is built can reach nothing of the
// host: no disk, file, process or service, and nothing of the caller.
//
// Promise (Files of strangers): A hostile package set up in a base image reaches no disk, file,
// process or service of the host, and nothing of the caller.
func TestHostilePackages(t *testing.T) {
	s := realState(t)
	if archive := os.Getenv(hostileArchive); archive != "" {
		buildFake(t, s, fakeBase(t), archive)
		return
	}
	const word, key = "only-for-root-of-the-host", "orrery-test-key"
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte(word), 0o600))
	open, err := os.Open(secret)
	must(t, err)
	defer open.Close()
	var disk unix.Stat_t
	must(t, unix.Stat(s.Dir, &disk))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	sleeper := exec.Command("sleep", "600")
	must(t, sleeper.Start())
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	hostile := fakePackage{
		name: "hostile", control: "Priority: required\n", files: map[string]string{"/usr/lib/attack": need.Attack(t)},
		script: fmt.Sprintf("/usr/lib/attack set-up %s %s %d %d %s %s >/usr/lib/attack.said 2>&1\nexit 0\n",
			secret, word, disk.Dev, sleeper.Process.Pid, key, l.Addr()),
	}
	archive, base := fakeArchive(t, "bookworm", toolbox(t), hostile), fakeBase(t)
	dropAfter(t, s, base, archive)

	// The builder is a careless caller: it has an open file, a key in its session, and a secret in
	// its environment.
	builder := exec.Command(os.Args[0], "-test.run=^TestHostilePackages$", "-test.v")
	builder.Env = append(os.Environ(), hostileArchive+"="+archive, "ORRERY_TEST_WORD="+word)
	builder.ExtraFiles = []*os.File{open}
	must(t, host.OnLockedThread(func() error {
		if _, err := unix.KeyctlJoinSessionKeyring("orrery-test"); err != nil {
			return err
		}
		if _, err := unix.AddKey("user", key, []byte(word), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
			return err
		}
		out, err := builder.CombinedOutput()
		t.Logf("%s", out)
		return err
	}))
	said, err := os.ReadFile(filepath.Join(s.Tree(base.Digest), "usr/lib/attack.said"))
	must(t, err)
	if !strings.HasSuffix(string(said), "tried all\n") {
		t.Errorf("the attack has not tried all:\n%s", said)
	}
	for line := range strings.Lines(string(said)) {
		if reached, ok := strings.CutPrefix(line, "reached: "); ok {
			t.Errorf("a package that is set up reaches the host: %s", reached)
		}
	}
	nothingLeft(t, s)
}

// fakeBase returns the recipe of a base with the package "hostile". It is different in each test.
func fakeBase(t *testing.T) *spec.Layer {
	base := spec.Base(site.Mirror{}, site.Image{Name: "hostile", Suite: "bookworm", Packages: []string{"hostile"}})
	base.Digest = spec.Digest(t.Name())
	return base
}

// buildFake builds a base from a fakeArchive.
func buildFake(t *testing.T, s *Store, base *spec.Layer, archive string) {
	t.Helper()
	if err := s.BuildBase(t.Context(), base, site.Mirror{Apt: "file://" + archive}, sayTo(t)); err != nil {
		log, _ := os.ReadFile(s.LogPath(base.Digest))
		t.Fatalf("%v\n%s", err, log)
	}
}

// dropAfter removes a base now and when the test ends, and then removes its packages from the
// shared cache.
func dropAfter(t *testing.T, s *Store, base *spec.Layer, archive string) {
	t.Helper()
	must(t, s.drop(base.Digest))
	packages, err := filepath.Glob(filepath.Join(archive, "pool/*.deb"))
	must(t, err)
	t.Cleanup(func() {
		must(t, s.drop(base.Digest))
		for _, file := range packages {
			_ = os.Remove(s.Cache.Archive(file))
		}
	})
}

// TestSharedPackages: what another build has left in the shared package cache gets into no base.
// What the packages of a base do while they are set up gets into no other build.
//
// Promise (Files of strangers): What builds leave among shared packages gets into no base image,
// and what packages of a base do gets into no other build.
func TestSharedPackages(t *testing.T) {
	s := realState(t)
	spoil := "for file in /var/cache/apt/archives/*.deb; do echo spoilt >>$file; done\n"
	archive := fakeArchive(t, "bookworm", toolbox(t),
		fakePackage{name: "hostile", control: "Priority: required\n", script: spoil})
	packages, err := filepath.Glob(filepath.Join(archive, "pool/*.deb"))
	must(t, err)
	must(t, os.MkdirAll(s.Cache.archives(), 0o755))
	for _, file := range packages {
		if strings.HasPrefix(filepath.Base(file), "hostile") {
			text, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(s.Cache.Archive(file), bytes.Replace(text, []byte("spoilt"), []byte("poison"), 1), 0o644))
		}
	}
	base := fakeBase(t)
	dropAfter(t, s, base, archive)
	buildFake(t, s, base, archive)
	script, err := os.ReadFile(filepath.Join(s.Tree(base.Digest), "var/lib/dpkg/info/hostile.postinst"))
	if err != nil || !strings.Contains(string(script), "spoilt") {
		t.Errorf("the base has a package of another build: %q, %v", script, err)
	}
	for _, file := range packages {
		want, err := os.ReadFile(file)
		must(t, err)
		if got, err := os.ReadFile(s.Cache.Archive(file)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s of the shared packages is not what the archive has: %v", filepath.Base(file), err)
		}
	}
}
