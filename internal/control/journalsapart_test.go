package control_test

import (
	"strings"
	"testing"

	"orrery/internal/control/nodes"
	"orrery/internal/control/twins"
	"orrery/internal/site"
)

// TestJournalsApart: the journal of a site has when a twin began and ended, but not what was done in it.
// The journal of a twin has only that, and is not the one of a former twin of the same name.
//
// Promise (Members): Owners of a twin read the journal of that twin alone, and owners of a site
// none of a twin.
func TestJournalsApart(t *testing.T) {
	d := newDesk(t)
	d.up()
	commands := func(s *site.Site) string {
		t.Helper()
		h, err := nodes.ReadHistory(t.Context(), d.Session, s, 0)
		d.must(err)
		var all []string
		for _, e := range h.Entries {
			if e.Kind == "begin" {
				all = append(all, e.Command)
			}
		}
		return strings.Join(all, ", ")
	}
	run := func(command string, do func() error) {
		t.Helper()
		d.Session.Command = command
		d.must(do())
	}
	before := commands(d.site())
	var twin *site.Site
	for range 2 {
		run("create twin", func() (err error) {
			twin, _, err = twins.Create(t.Context(), d.Session, twinOf("toykat", d.dir, "dev"))
			return err
		})
		run("restart in twin", func() error {
			_, err := nodes.Restart(t.Context(), d.Session, twin, []string{"web1"})
			return err
		})
		if got := commands(twin); got != "create twin, restart in twin" {
			t.Errorf("the journal of the twin has %q", got)
		}
		run("destroy twin", func() error { return twins.Destroy(t.Context(), d.Session, "dev") })
	}
	const once = ", create twin, destroy twin"
	if got := commands(d.site()); got != before+once+once {
		t.Errorf("the journal of the site has %q", got)
	}
}
