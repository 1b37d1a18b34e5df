package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestClaim checks claims to one site from two state directories.
//
// Promise (Other users of the host): No command shows nodes of another state directory as absent.
// With test.TestTwoStateDirectories.
func TestClaim(t *testing.T) {
	old := claims
	claims = filepath.Join(t.TempDir(), "claims")
	defer func() { claims = old }()
	a, b := Dirs{State: t.TempDir()}, Dirs{State: t.TempDir()}
	refused := func(d Dirs, by Dirs) {
		t.Helper()
		err := d.Claim(t.Context(), "karoo")
		if err == nil || problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), by.State) {
			t.Errorf("claimed by another: %v", err)
		}
		if got := d.Elsewhere("karoo"); got == nil || got.Error() != err.Error() {
			t.Errorf("it is elsewhere: %v", got)
		}
		if where := d.OtherStateDir("karoo"); where != by.State {
			t.Errorf("it is kept in %q", where)
		}
	}
	granted := func(d Dirs, key string) {
		t.Helper()
		if err := d.Elsewhere(key); err != nil {
			t.Error(err)
		}
		if where := d.OtherStateDir(key); where != "" {
			t.Errorf("it is kept in %q", where)
		}
		if err := d.Claim(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	granted(a, "karoo")
	granted(a, "karoo")
	if err := a.Elsewhere(""); err != nil {
		t.Errorf("all sites: %v", err)
	}
	granted(b, "toy")
	granted(b, "karoo") // a has no node of the site, and nothing runs there
	if err := os.MkdirAll(filepath.Join(b.Nodes("karoo"), "101"), 0o755); err != nil {
		t.Fatal(err)
	}
	refused(a, b)
	granted(b, "karoo")
	link := filepath.Join(t.TempDir(), "same")
	if err := os.Symlink(b.State, link); err != nil {
		t.Fatal(err)
	}
	granted(Dirs{State: link}, "karoo") // the same directory under another name
	granted(b, "karoo")
	if err := os.RemoveAll(b.Nodes("karoo")); err != nil {
		t.Fatal(err)
	}
	lock, err := TakeLock(t.Context(), b.Lock("karoo"), Holder{})
	if err != nil {
		t.Fatal(err)
	}
	refused(a, b)
	lock.Release()
	granted(a, "karoo")
	if err := os.RemoveAll(a.State); err != nil {
		t.Fatal(err)
	}
	granted(b, "karoo")
}

// TestYield checks that a claim is released only if no node of the site is left.
func TestYield(t *testing.T) {
	old := claims
	claims = filepath.Join(t.TempDir(), "claims")
	defer func() { claims = old }()
	a, b := Dirs{State: t.TempDir()}, Dirs{State: t.TempDir()}
	claim := func(d Dirs, key string) {
		t.Helper()
		if err := os.MkdirAll(d.Site(key), 0o755); err != nil { // as taking the site's lock does
			t.Fatal(err)
		}
		if err := d.Claim(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	left := func(want string) {
		t.Helper()
		all, _ := filepath.Glob(filepath.Join(claims, "[^.]*"))
		for i := range all {
			all[i] = filepath.Base(all[i])
		}
		if got := strings.Join(all, " "); got != want {
			t.Errorf("claims: %q, want %q", got, want)
		}
	}
	claim(a, "karoo")
	claim(b, "toy")
	b.Yield(t.Context(), "karoo") // the claim is not b's
	left("karoo toy")
	node := filepath.Join(a.Nodes("karoo"), "101")
	if err := os.MkdirAll(node, 0o755); err != nil {
		t.Fatal(err)
	}
	a.Yield(t.Context(), "karoo") // a node still exists
	left("karoo toy")
	if err := os.Rename(node, filepath.Join(a.Nodes("karoo"), ".101")); err != nil { // the next run removes it
		t.Fatal(err)
	}
	a.Yield(t.Context(), "karoo")
	left("toy")
	a.Yield(t.Context(), "karoo")
	claim(a, "karoo.dev1")
	if err := os.RemoveAll(a.Site("karoo.dev1")); err != nil {
		t.Fatal(err)
	}
	claim(a, "karoo") // the next claim removes abandoned ones
	left("karoo toy")
}
