package rolefetch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/tree"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(at), 0o755))
	must(t, os.WriteFile(at, []byte(text), 0o644))
}

// git runs git in a directory, without the user's configuration.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// repository creates a repository of roles with what must have no effect, and returns its address and two
// commits. Only the second one has role late.
func repository(t *testing.T) (url, first, second string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for name, value := range map[string]string{"HOME": t.TempDir(), "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	write(t, dir, "lib/web/role.toml", "description = \"$Format:%H$\"\n")
	write(t, dir, "lib/web/large", "version https://git-lfs.github.com/spec/v1\n")
	write(t, dir, "lib/web/run", "#!/bin/sh\n")
	write(t, dir, ".gitattributes", "role.toml export-subst\nlarge filter=evil\nrun export-ignore\n")
	must(t, os.Chmod(filepath.Join(dir, "lib/web/run"), 0o755))
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "lib/web/link")))
	git(t, dir, "add", "-A")
	git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",lib/sub")
	git(t, dir, "commit", "-q", "-m", "first")
	first = git(t, dir, "rev-parse", "HEAD")
	write(t, dir, "lib/late/role.toml", "")
	git(t, dir, "add", "lib/late")
	git(t, dir, "commit", "-q", "-m", "second")
	old := protocols
	protocols = "file"
	t.Cleanup(func() { protocols = old })
	return "file://" + dir, first, git(t, dir, "rev-parse", "HEAD")
}

// fetchInto fetches a commit into a directory.
func fetchInto(t *testing.T, dir, url, commit string) (Fetched, error) {
	t.Helper()
	root, err := tree.Open(dir)
	must(t, err)
	defer root.Close()
	return fetch(t.Context(), &sitefile.Repository{Site: dir, URL: url, Commit: commit}, root)
}

// TestFetch: a site uses the roles of a fetched commit, with the exact content of their files. Links,
// submodules, filters and attributes have no effect. Before the fetch, the site file has a mistake.
//
// Promise (Files of strangers): Of a git repository with roles, only the content of regular files
// has an effect, and git runs as the owner of the site directory. With
// control/rolefetch.TestFetchRefuses, control/rolefetch.TestFetchAsOwner.
func TestFetch(t *testing.T) {
	url, first, second := repository(t)
	dir := t.TempDir()
	write(t, dir, "site.toml", fmt.Sprintf(`[site]
name = "test"
roles_path = ["../none", "git+https://git.example.org/roles.git@%s#lib"]
[image.debian]
suite = "bookworm"
[node.one]
id = 1
roles = ["web"]
`, first))
	write(t, dir, "../none/x", "")
	_, err := sitefile.Load(dir)
	if want := "site.toml:3: roles_path: commit " + first; err == nil || !strings.HasPrefix(err.Error(), want) ||
		!strings.Contains(err.Error(), "orrery role fetch") {
		t.Fatalf("%v, not %s", err, want)
	}
	all, err := sitefile.Repositories(dir)
	if err != nil || len(all) != 1 || all[0].Site != dir || all[0].Stored || all[0].URL != "https://git.example.org/roles.git" {
		t.Fatalf("%+v: %v", all, err)
	}
	done, err := fetchInto(t, dir, url, first)
	must(t, err)
	if done.Files != 4 || done.Skipped != 2 {
		t.Errorf("%+v", done)
	}
	s, err := sitefile.Load(dir)
	must(t, err)
	r, _ := s.Role("web")
	if r.Description != "$Format:%H$" || !strings.HasPrefix(string(r.Beside["large"]), "version https") ||
		len(r.Beside["run"]) == 0 || r.Beside["link"] != nil || r.Dir != ".fetched_roles/"+first+"/lib/web" {
		t.Errorf("the role is %+v", r)
	}
	kept := filepath.Join(t.TempDir(), "copy")
	_, err = sitefile.Copy(dir, kept)
	must(t, err)
	must(t, os.RemoveAll(filepath.Join(dir, sitefile.FetchedRoles)))
	if copied, err := sitefile.LoadCopy(kept, dir); err != nil || len(copied.Roles) != 1 {
		t.Errorf("the copy: %v", err)
	}

	_, err = fetchInto(t, dir, url, second)
	must(t, err)
	if !tree.Exists(filepath.Join(dir, sitefile.FetchedRoles, second, "lib/late/role.toml")) {
		t.Error("another commit is not stored")
	}
	if all, err := Fetch(t.Context(), t.TempDir(), func(string) {}); err == nil {
		t.Errorf("without a site: %v", all)
	}
}

// TestFetchRefuses: what cannot be fetched or is too large leaves nothing.
func TestFetchRefuses(t *testing.T) {
	url, first, _ := repository(t)
	dir := t.TempDir()
	refused := func(what, url, commit, want string) {
		t.Helper()
		_, err := fetchInto(t, dir, url, commit)
		if problem.ExitCode(err) == 0 || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, not %s", what, err, want)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, sitefile.FetchedRoles, "[.0-9a-f]*")); len(left) > 1 {
			t.Errorf("%s: left is %v", what, left) // more than .gitignore
		}
	}
	refused("a missing commit", url, strings.Repeat("0", 39)+"1", "has no commit")
	refused("a missing repository", url+"-gone", first, "cannot be fetched")
	blob := git(t, strings.TrimPrefix(url, "file://"), "rev-parse", first+":.gitattributes")
	refused("no commit", url, blob, "has no commit")
	old := maxBytes
	maxBytes = 50
	refused("a large one", url, first, "more than 10000 files or 0 MiB")
	maxBytes = old
	protocols = "https:ssh"
	refused("another protocol", url, first, "cannot be fetched")
}

// TestFetchAsOwner: if root fetches into another user's site directory, git runs as that user, and the
// files are the user's.
func TestFetchAsOwner(t *testing.T) {
	const nobody = 65534
	if os.Geteuid() != 0 {
		t.Skip("only root can act for another user")
	}
	if _, err := user.LookupId(fmt.Sprint(nobody)); err != nil {
		t.Skip(err)
	}
	url, first, _ := repository(t)
	// Only the user can read the repository: git refuses those of others.
	from := strings.TrimPrefix(url, "file://")
	must(t, os.Chmod(filepath.Dir(from), 0o755))
	must(t, filepath.WalkDir(from, func(at string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(at, nobody, nobody))
	}))
	dir := t.TempDir()
	must(t, os.Chown(dir, nobody, nobody))
	if _, err := fetchInto(t, dir, url, first); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", first, first + "/lib/web/run"} {
		info, err := os.Stat(filepath.Join(dir, sitefile.FetchedRoles, name))
		must(t, err)
		if st := info.Sys().(*syscall.Stat_t); st.Uid != nobody {
			t.Errorf("%s belongs to %d", name, st.Uid)
		}
	}
}
