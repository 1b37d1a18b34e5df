package draft

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

// An importer is ImportCompose or ImportAnsible.
type importer func(dir, name, file string) (*sitefile.Imported, []string, error)

// noSubnetTaken makes the subnets of drafts the same on every machine.
func noSubnetTaken(t testing.TB) {
	before := takenSubnets
	takenSubnets = func() []netip.Prefix { return nil }
	t.Cleanup(func() { takenSubnets = before })
}

// wantImported compares the files of an imported site, and what was lost and is to do, with a golden file.
func wantImported(t *testing.T, dir string, made *sitefile.Imported, paths []string, golden string,
	places *strings.Replacer) {
	t.Helper()
	var got strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		inside, _ := filepath.Rel(dir, path)
		got.WriteString("== " + inside + "\n" + places.Replace(string(text)))
	}
	got.WriteString("== lost\n" + strings.Join(made.Lost, "\n") + "\n== to do\n" + strings.Join(made.ToDo, "\n") + "\n")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, _ := os.ReadFile(golden); got.String() != string(want) {
		t.Errorf("got\n%s", got.String())
	}
}

// converted imports a file, compares the site directory with the golden file, and checks the site.
func converted(t *testing.T, convert importer, file, golden string) {
	t.Helper()
	noSubnetTaken(t)
	dir := filepath.Join(t.TempDir(), "kat")
	made, paths, err := convert(dir, "", file)
	if err != nil {
		t.Fatal(err)
	}
	wantImported(t, dir, made, paths, golden, strings.NewReplacer())
	if s, err := sitefile.Load(dir); err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if _, _, err := convert(dir, "", file); !problem.Is(err, problem.Usage) {
		t.Errorf("a second time: %v", err)
	}
}

// refused imports texts and other files that are not what they should be.
func refused(t *testing.T, convert importer, texts map[string][2]string) {
	t.Helper()
	noSubnetTaken(t)
	top := t.TempDir()
	pipe := filepath.Join(top, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(what, file, want string) {
		dir := filepath.Join(top, "site")
		_, _, err := convert(dir, "", file)
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\x1b\x00") {
			t.Errorf("%s: %v", what, err)
		}
		if exists(dir) {
			t.Fatalf("%s: something was written", what)
		}
	}
	for what, c := range texts {
		file := filepath.Join(top, "file")
		if err := os.WriteFile(file, []byte(c[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		try(what, file, c[1])
	}
	try("a pipe", pipe, "cannot be read")
	try("a directory", top, "cannot be read")
	try("gone", filepath.Join(top, "gone"), "cannot be read")
}

// fuzzed checks that whatever a file contains, what is written is inside the site directory, and is TOML.
func fuzzed(f *testing.F, convert importer) {
	noSubnetTaken(f)
	f.Fuzz(func(t *testing.T, text string) {
		top := t.TempDir()
		file := filepath.Join(top, "file")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(top, "site")
		made, paths, err := convert(dir, "", file)
		if err != nil {
			return
		}
		for _, path := range paths {
			if !strings.HasPrefix(path, dir+"/") {
				t.Errorf("it wrote %s", path)
			}
		}
		for _, said := range append(made.Lost, made.ToDo...) {
			if strings.ContainsAny(said, "\x1b\x00\n\r") {
				t.Errorf("it says %q", said)
			}
		}
		if _, err := sitefile.Load(dir); err != nil && strings.Contains(err.Error(), "not TOML") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
