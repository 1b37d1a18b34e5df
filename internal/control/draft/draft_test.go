package draft

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

const database = "[web1]\nctid = 101\nip = 10.7.0.11\nroles = web\n[db1]\nctid = 102\nip = 10.7.0.12\nroles = db\n"

// within returns paths relative to their directory.
func within(dir string, paths []string) (names []string) {
	for _, path := range paths {
		names = append(names, strings.TrimPrefix(path, dir+"/"))
	}
	return names
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestNames: without a name, a site is named after its directory, with only the letters that are
// allowed.
func TestNames(t *testing.T) {
	for directory, want := range map[string]string{
		"karoo":                        "karoo",
		"My Site.d":                    "my-site-d",
		"-dishes_":                     "dishes",
		"7dishes":                      "site-7dishes",
		"...":                          "site",
		strings.Repeat("a", 33):        strings.Repeat("a", 32),
		strings.Repeat("a", 31) + "-b": strings.Repeat("a", 31), // a name does not end with a hyphen
	} {
		dir := filepath.Join(t.TempDir(), directory)
		t.Setenv("HOME", t.TempDir())
		paths, err := WriteExample(dir, "")
		if err != nil || !slices.Equal(within(dir, paths), []string{"site.toml", "roles/hello/role.toml"}) {
			t.Errorf("%q: written are %v (%v)", directory, paths, err)
			continue
		}
		if s, err := sitefile.Load(dir); err != nil || s.Name != want || s.ID == "" {
			t.Errorf("%q: the site is %+v (%v), and not called %q", directory, s, err, want)
		}
	}
}

// TestNamed: a given name is used, if it is valid.
func TestNamed(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		func() error { _, err := WriteExample(dir, "Karoo"); return err }(),
		func() error {
			_, _, err := WriteImported(dir, stdinName, strings.NewReader(database), "Karoo")
			return err
		}(),
	} {
		if problem.ExitCode(err) != int(problem.Usage) || !strings.Contains(err.Error(), "--name karoo") {
			t.Errorf("an illegal name: %v", err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("all the same there is %v (%v)", left, err)
	}
	if _, err := WriteExample(dir, "sutherland"); err != nil {
		t.Fatal(err)
	}
	if s, err := sitefile.Load(dir); err != nil || s.Name != "sutherland" {
		t.Errorf("the site is %+v (%v)", s, err)
	}
}

// TestImported: a host database becomes a site. It gets an empty role for each role that does not
// exist yet.
func TestImported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts.ini")
	if err := os.WriteFile(file, []byte(database), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ from, name, want string }{
		"of a file":          {file, "", "hosts"},
		"of a file, named":   {file, "karoo", "karoo"},
		"of a stream":        {stdinName, "", "directory"},
		"of a stream, named": {stdinName, "karoo", "karoo"},
	} {
		dir := filepath.Join(t.TempDir(), "directory")
		if err := os.MkdirAll(filepath.Join(dir, "roles/db"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "roles/db/role.toml"), []byte("description = \"mine\"\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		made, paths, err := WriteImported(dir, c.from, strings.NewReader(database), c.name)
		if err != nil || made.Site != c.want ||
			!slices.Equal(within(dir, paths), []string{"site.toml", "roles/web/role.toml"}) {
			t.Errorf("%s: %+v, written are %v (%v)", what, made, paths, err)
			continue
		}
		if text := read(t, dir, "roles/db/role.toml"); !strings.Contains(text, "mine") {
			t.Errorf("%s: a role that was there is %q", what, text)
		}
		if s, err := sitefile.Load(dir); err != nil || s.Name != c.want || len(s.Nodes) != 2 {
			t.Errorf("%s: the site is %+v (%v)", what, s, err)
		}
	}
}

// TestNotWritten: an existing site is not changed, and read and write errors are reported.
func TestNotWritten(t *testing.T) {
	siteDir := t.TempDir()
	if err := os.WriteFile(filepath.Join(siteDir, sitefile.Name), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(siteDir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	small := func(dir string) error { _, err := WriteExample(dir, ""); return err }
	imported := func(dir, from, text string) error {
		_, _, err := WriteImported(dir, from, strings.NewReader(text), "")
		return err
	}
	for what, c := range map[string]struct {
		err  error
		kind problem.Kind
		word string
	}{
		"a site is there":              {small(siteDir), problem.Usage, "a site already exists"},
		"a site is there, of a stream": {imported(siteDir, stdinName, database), problem.Usage, "a site already exists"},
		"a file is in the way":         {small(file), problem.Failed, "cannot be written"},
		"no such database": {imported(t.TempDir(), filepath.Join(siteDir, "none.ini"), ""), problem.Usage,
			"cannot be read"},
		"no database":           {imported(t.TempDir(), stdinName, "[web1\n"), problem.Mistake, "INI"},
		"no room for an import": {imported(file, stdinName, database), problem.Failed, "cannot be written"},
	} {
		if problem.ExitCode(c.err) != int(c.kind) || !strings.Contains(c.err.Error(), c.word) {
			t.Errorf("%s: %v", what, c.err)
		}
	}
	if text := read(t, siteDir, sitefile.Name); text != "mine\n" {
		t.Errorf("the site that was there is %q", text)
	}
}
