package control_test

import (
	"slices"
	"testing"
	"time"

	"orrery/internal/control/twins"
	"orrery/internal/problem"
)

// TestTwinApart: if hosts have different records of a twin, that is reported, and the twin does not
// come up. It can be destroyed and created again.
func TestTwinApart(t *testing.T) {
	d, m := frailDesk(t, false)
	m.order("", 0)
	d.up()
	_, _, err := twins.Create(t.Context(), d.Session, twinOf("toykat", d.dir, "dev"))
	d.must(err)
	one := func() error { _, err := d.Connector(d.site()).Twins().Find(t.Context(), "dev"); return err }
	d.must(one())
	all, silent, err := twins.List(t.Context(), d.Session)
	if err != nil || silent != nil || len(all) != 1 || !slices.Equal(all[0].On, []string{"sv1", "sv2"}) ||
		all[0].Nodes != 2 || all[0].Running != 2 {
		t.Errorf("the twins are %+v, %v, %v", all, silent, err)
	}
	_, err = d.Connector(d.site()).Twins().Find(t.Context(), "deb")
	d.wantExit(err, problem.Mistake, `has no twin "deb"`, "did you mean dev?")
	_, err = d.Connector(d.site()).Twins().Find(t.Context(), "something-else")
	d.wantExit(err, problem.Mistake, "existing twins: dev")
	other := d.others["sv2"].Host("sv2", "toykat.dev", nil)
	records, err := other.Twins.List(t.Context())
	d.must(err)
	for what, change := range map[string]func(){
		"made at another time": func() { records[0].Created = records[0].Created.Add(time.Second) },
		"of another directory": func() { records[0].Dir += "-other" },
		"for somebody else":    func() { records[0].Options.Owner = "eve" },
	} {
		before := records[0]
		change()
		d.must(other.Twins.Save(t.Context(), records[0]))
		d.wantExit(one(), problem.Surprise, "hosts sv1 and sv2 have different records of twin dev",
			"orrery twin destroy dev")
		if _, err := d.ofTwin("dev").Load(); err == nil {
			t.Errorf("a twin is loaded of which one host says that it is %s", what)
		}
		records[0] = before
	}
	d.must(twins.Destroy(t.Context(), d.Session, "dev"))
	_, _, err = twins.Create(t.Context(), d.Session, twinOf("toykat", d.dir, "dev"))
	d.must(err)
	d.others = nil
	d.Links.Close()
	_, err = d.Connector(d.site()).Twins().Find(t.Context(), "other")
	d.wantExit(err, problem.Failed, `no host of site toykat that answers has a twin "other"`)
}
