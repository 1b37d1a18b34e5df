package pkgmirror

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/image"
)

// newRun returns a run of a mirror in a temporary directory, with the tools of this machine.
func newRun(t *testing.T) *run {
	t.Helper()
	for _, name := range []string{"apt-ftparchive", "dpkg-deb", "gpg", "gpgv"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	dir, err := os.MkdirTemp("/tmp", "orrery-mirror-") // the agent's socket needs a short path
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	m := &Mirror{Dir: filepath.Join(dir, "mirror"), Keys: filepath.Join(dir, "keys"),
		Store: image.Open(filepath.Join(dir, "state")),
		Log:   io.Discard, Progress: func(string) {}}
	must(t, os.MkdirAll(m.incoming(), 0o755))
	return &run{Mirror: m, debs: reread(t, m), done: &Result{}}
}

// reread returns what the index says now.
func reread(t *testing.T, m *Mirror) *debs {
	t.Helper()
	d, err := readDebs(m.apt())
	must(t, err)
	return d
}

// fetched builds a package where downloads arrive, and returns its name and control fields.
func (r *run) fetched(t *testing.T, name, version, arch string) (Package, paragraph) {
	t.Helper()
	tree := filepath.Join(t.TempDir(), name)
	must(t, os.MkdirAll(filepath.Join(tree, "DEBIAN"), 0o755))
	must(t, os.WriteFile(filepath.Join(tree, "DEBIAN", "control"), []byte("Package: "+name+"\nVersion: "+version+
		"\nArchitecture: "+arch+"\nMaintainer: a <a@example.org>\nPriority: required\nSection: misc\nDescription: a\n"),
		0o644))
	file := filepath.Join(r.incoming(), cacheName(name, version, arch))
	out, err := exec.Command("dpkg-deb", "--root-owner-group", "--build", tree, file).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	all := paragraphs(fieldsOf(t.Context(), file))
	if len(all) != 1 || all[0].pkg() != (Package{name, version}) {
		t.Fatalf("the fields of %s are %v", file, all)
	}
	digest, err := digestOf(file)
	must(t, err)
	all[0].paragraph["sha256"] = digest
	return all[0].pkg(), all[0].paragraph
}

func (r *run) indexOf(t *testing.T, arch string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.apt(), "dists", "bookworm", "main", "binary-"+arch, "Packages"))
	must(t, err)
	return string(text)
}

// TestPublish: packages that were fetched are in a signed index, with the priority of their
// archive. What the next run finds damaged is missing. Packages that no layer needs leave the index
// and then the pool, and a client that has begun to read the former index finds its parts.
func TestPublish(t *testing.T) {
	r := newRun(t)
	wanted := map[string][]string{"bookworm": {"main"}}
	other := "arm64"
	if architecture() == other {
		other = "amd64"
	}
	hello, fields := r.fetched(t, "hello", "1:1.0-1", architecture())
	tool, toolFields := r.fetched(t, "tool", "2.0", "all")
	alien, alienFields := r.fetched(t, "alien", "3.0", other)
	fields["priority"], fields["section"] = "important", "utils"
	for pkg, p := range map[Package]paragraph{hello: fields, tool: toolFields, alien: alienFields} {
		if placed, err := r.placeDeb("bookworm", pkg, p); !placed || err != nil {
			t.Fatalf("%s: %t, %v", pkg, placed, err)
		}
	}
	if placed, err := r.placeDeb("bookworm", Package{"lost", "1"},
		paragraph{"sha256": "00", "architecture": "all"}); placed || err != nil {
		t.Errorf("a package that is nowhere: %t, %v", placed, err)
	}
	if placed, err := r.placeDeb("bookworm", tool,
		paragraph{"sha256": toolFields["sha256"], "architecture": "../x"}); placed || err != nil {
		t.Errorf("an architecture that is a path: %t, %v", placed, err)
	}
	if r.done.Fetched != 3 || r.done.Cached != 0 || r.done.Bytes == 0 {
		t.Errorf("done is %+v", r.done)
	}
	if left, _ := os.ReadDir(r.incoming()); len(left) > 0 {
		t.Errorf("left where downloads arrive: %v", left)
	}
	must(t, r.publishDebs(t.Context(), wanted))

	release := filepath.Join(r.apt(), "dists", "bookworm", "InRelease")
	key := filepath.Join(r.Dir, "key.gpg")
	for _, args := range [][]string{{"gpg", "--batch", "--yes", "--homedir", r.Keys, "--dearmor", "-o", key,
		filepath.Join(r.apt(), "key.asc")},
		{"gpgv", "--keyring", key, release},
		{"gpgv", "--keyring", key, filepath.Join(filepath.Dir(release), "Release.gpg"),
			filepath.Join(filepath.Dir(release), "Release")}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", args, out)
		}
	}
	text, err := os.ReadFile(release)
	must(t, err)
	archs := []string{architecture(), other}
	slices.Sort(archs)
	for _, line := range []string{"Codename: bookworm", "Components: main", "Acquire-By-Hash: yes", "Origin: Orrery",
		"Architectures: " + strings.Join(archs, " ")} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("%q is not in %s", line, text)
		}
	}
	if index := r.indexOf(t, architecture()); !strings.Contains(index, "Package: hello\n") ||
		!strings.Contains(index, "Package: tool\n") ||
		strings.Contains(index, "Package: alien\n") || !strings.Contains(index, "Priority: important\n") {
		t.Errorf("the index is %s", index)
	}
	if index := r.indexOf(t, other); !strings.Contains(index, "Package: alien\n") {
		t.Errorf("the index of %s is %s", other, index)
	}
	for _, pocket := range pockets {
		if _, err := os.Stat(filepath.Join(r.apt(), "dists", "bookworm"+pocket, "Release.gpg")); err != nil {
			t.Error(err)
		}
	}

	// The next run knows it all, and does nothing.
	r.debs = reread(t, r.Mirror)
	lacks, err := r.debs.missingDebs("bookworm", []Package{hello, tool, {"lost", "1"}})
	if err != nil || !slices.Equal(lacks, []Package{{"lost", "1"}}) {
		t.Errorf("missing are %v, %v", lacks, err)
	}
	if o := r.debs.overrides["bookworm"]["hello"]; o != (override{"important", "utils"}) {
		t.Errorf("the override is %v", o)
	}
	before, err := os.Stat(release)
	must(t, err)
	must(t, r.publishDebs(t.Context(), wanted))
	if after, err := os.Stat(release); err != nil || !os.SameFile(before, after) {
		t.Errorf("an index that does not change was written anew: %v", err)
	}

	// A file that was changed is missing. The builders' cache has another copy.
	inPool := filepath.Join(r.apt(), poolPath("bookworm", "tool", "2.0", "all"))
	whole, err := os.ReadFile(inPool)
	must(t, err)
	cached := r.Store.Cache.Archive(cacheName("tool", "2.0", "all"))
	must(t, os.MkdirAll(filepath.Dir(cached), 0o755))
	must(t, os.WriteFile(cached, whole, 0o644))
	must(t, os.WriteFile(inPool, []byte("damaged"), 0o644))
	if lacks, err := r.debs.missingDebs("bookworm", []Package{hello, tool}); err != nil ||
		!slices.Equal(lacks, []Package{tool}) {
		t.Errorf("missing are %v, %v", lacks, err)
	}
	p, ok := r.findStored(t.Context(), "bookworm", tool)
	if !ok || p["sha256"] != toolFields["sha256"] {
		t.Errorf("kept is %v, %t", p, ok)
	}
	if _, ok := r.findStored(t.Context(), "bookworm", Package{"tool", "2.1"}); ok {
		t.Error("another version is kept")
	}
	if placed, err := r.placeDeb("bookworm", tool, p); !placed || err != nil || r.done.Cached != 1 {
		t.Errorf("%t, %v, %+v", placed, err, r.done)
	}
	if _, err := os.Stat(cached); err != nil {
		t.Errorf("the builders' copy: %v", err)
	}

	// What no layer needs leaves.
	former, err := filepath.Glob(filepath.Join(r.apt(), "dists", "bookworm", "main", "binary-"+architecture(), "by-hash",
		"SHA256", "*"))
	must(t, err)
	if len(former) == 0 {
		// apt-ftparchive names parts by digest in Release only: the client's way is tested with a link.
		byHash := filepath.Join(r.apt(), "dists", "bookworm", "main", "binary-"+architecture(), "by-hash", "SHA256")
		must(t, os.MkdirAll(byHash, 0o755))
		former = []string{filepath.Join(byHash, "00")}
		must(t, os.WriteFile(former[0], nil, 0o644))
	}
	r.debs.prune([]*Layer{{Digest: "a", Suite: "bookworm", Debian: []string{hello.String()}}})
	must(t, r.publishDebs(t.Context(), wanted))
	if index := r.indexOf(t, architecture()); !strings.Contains(index, "Package: hello\n") ||
		strings.Contains(index, "Package: tool\n") {
		t.Errorf("the index is %s", index)
	}
	if _, err := os.Stat(former[0]); err != nil {
		t.Errorf("a part of the former index: %v", err)
	}
	if !slices.Contains(r.debs.doomed, inPool) || len(r.debs.doomed) != 2 {
		t.Errorf("to be removed are %v", r.debs.doomed)
	}
	removed, err := removeDoomed(r.debs.doomed)
	if _, gone := os.Stat(inPool); err != nil || removed != 2 || gone == nil {
		t.Errorf("removed were %d: %v", removed, err)
	}
}

// TestPublishWithoutTools: a host that lacks a tool is told so, and what to install.
func TestPublishWithoutTools(t *testing.T) {
	r := newRun(t)
	t.Setenv("PATH", "/nowhere")
	if err := r.publishDebs(t.Context(), map[string][]string{"bookworm": {"main"}}); err == nil ||
		!strings.Contains(err.Error(), "apt-ftparchive is not installed") {
		t.Error(err)
	}
	if err := keyring(r.Keys).writeKey(t.Context(), filepath.Join(r.Dir, "key.asc")); err == nil ||
		!strings.Contains(err.Error(), "gpg is not installed") {
		t.Error(err)
	}
}

// TestDamagedPackage: a file that is no package has no fields.
func TestDamagedPackage(t *testing.T) {
	r := newRun(t)
	file := filepath.Join(r.incoming(), "a_1_all.deb")
	must(t, os.WriteFile(file, []byte("!<arch>\n"), 0o644))
	if text := fieldsOf(t.Context(), file); text != "" {
		t.Errorf("its fields are %q", text)
	}
	if text := fieldsOf(t.Context(), file+".none"); text != "" {
		t.Errorf("the fields of nothing are %q", text)
	}
}

func TestURLs(t *testing.T) {
	if apt, pypi := URLs("/srv/mirror"); apt != "file:///srv/mirror/apt" || pypi != "file:///srv/mirror/pypi/simple" {
		t.Errorf("%s, %s", apt, pypi)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
