package members

import (
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/member"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// TestRecorded: a member selects a recorded site or twin by name, by its directory, or by the
// current directory. If there is only one, it is the default.
func TestRecorded(t *testing.T) {
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}, From: "/srv"}
	up := func(name, as, dir string) {
		t.Helper()
		if err := c.Register().MarkUp(&site.Site{Name: name, Twin: as}, dir); err != nil {
			t.Fatal(err)
		}
	}
	twinOf := func(name, as, owner string) {
		t.Helper()
		if err := c.Register().WriteTwin(twin.Record{Site: name, Dir: "/srv/" + name,
			Options: twin.Options{Name: as, Owner: owner}}); err != nil {
			t.Fatal(err)
		}
	}
	means := func(said, from, as, want string) {
		t.Helper()
		c.From, c.Twin = from, as
		m, owner, err := recordedSite(c, said)
		got := strings.TrimSpace(m.Site + " " + m.Twin + " " + m.Dir + " " + owner)
		if err != nil || got != want {
			t.Errorf("%q from %s, twin %q: %q (%v), not %q", said, from, as, got, err, want)
		}
	}
	refuses := func(said, from, as string, kind problem.Kind, words string) {
		t.Helper()
		c.From, c.Twin = from, as
		if m, _, err := recordedSite(c, said); problem.ExitCode(err) != int(kind) || !strings.Contains(err.Error(), words) {
			t.Errorf("%q from %s, twin %q: %+v, %v", said, from, as, m, err)
		}
	}
	refuses("", "/", "", problem.Usage, "no site is up")
	up("a", "", "/srv/a")
	up("a", "dev", "/srv/a") // without --twin, a twin is not selected
	means("", "/", "", "a  /srv/a")
	up("b", "", "/srv/b")
	refuses("", "/", "", problem.Usage, "2 are up")
	means("", "/srv/b", "", "b  /srv/b")
	means("a", "/srv/b", "", "a  /srv/a")
	means("/srv/a/", "/", "", "a  /srv/a")
	means("../a", "/srv/b", "", "a  /srv/a")
	refuses("a", "/srv", "dev", problem.Mistake, "dev")
	refuses("/etc", "/", "", problem.Refused, "/etc is not a site that root has brought up")
	refuses("c", "/srv/a", "", problem.Refused, "c is not a site")

	twinOf("a", "dev", "ada")
	means("", "/", "dev", "a dev /srv/a ada")
	means("a", "/", "dev", "a dev /srv/a ada")
	refuses("b", "/", "dev", problem.Mistake, "dev")
	twinOf("b", "dev", "bob")
	refuses("", "/", "dev", problem.Usage, "2 sites have a twin called dev")
	means("/srv/b", "/", "dev", "b dev /srv/b bob")
	means("b", "/", "dev", "b dev /srv/b bob")
}

// TestMayNotCall: verbs that are not for members are refused before anything is looked up, and
// others if the site is not recorded.
func TestMayNotCall(t *testing.T) {
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}, Member: &member.Person{Name: "ada"}}
	for _, verb := range []string{"host check", "host-helper", "nothing"} {
		if err := MayCall(t.Context(), c, verb, nil, nil); problem.ExitCode(err) != int(problem.Refused) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if err := MayCall(t.Context(), c, "exec", nil, nil); problem.ExitCode(err) != int(problem.Usage) {
		t.Errorf("exec where no site is up: %v", err)
	}
	if err := MayCall(t.Context(), c, "twin destroy", nil,
		[]string{"dev"}); problem.ExitCode(err) != int(problem.Mistake) ||
		c.Twin != "dev" {
		t.Errorf("a twin that is not there: %v, %q", err, c.Twin)
	}
	c.Twin = ""
	if err := MayCall(t.Context(), c, "twin create", nil,
		[]string{"karoo"}); problem.ExitCode(err) != int(problem.Refused) ||
		!strings.Contains(err.Error(), "karoo is not a site") {
		t.Errorf("a twin of a site that is not up: %v", err)
	}
	dir := t.TempDir() + "/open"
	if err := c.Register().MarkUp(&site.Site{Name: "a"}, dir); err != nil {
		t.Fatal(err)
	}
	c.Twin = ""
	if err := MayCall(t.Context(), c, "exec", nil, nil); err == nil {
		t.Error("a directory that is not there may be anybody's")
	}
}
