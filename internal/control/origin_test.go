package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/problem"
)

// TestOrigin: whoever has the site directory steers; another site of that name does not, as long as there are nodes of the first one, and takes nothing away from it.
func TestOrigin(t *testing.T) {
	d, other := farDesk(t)
	record := func(m *machine) string { return filepath.Join(m.dirs.Site("toykat"), "origin.json") }
	d.up()
	of, err := os.ReadFile(record(d.machine))
	d.must(err)
	if far, err := os.ReadFile(record(other)); err != nil || string(far) != string(of) || len(of) < 16 {
		t.Errorf("one host has %s, the other %s (%v)", of, far, err)
	}
	id := strings.Split(string(of), `"`)[3]
	refused := func(text, why string) {
		t.Helper()
		d.write("site.toml", text)
		s := d.site()
		if _, err := d.Preview(t.Context(), nil, control.PreviewOptions{}); !problem.Is(err, problem.Surprise) || !strings.Contains(err.Error(), why) {
			t.Errorf("planned: %v", err)
		}
		if _, _, err := d.Up(t.Context(), s, nil, control.UpOptions{}); !problem.Is(err, problem.Surprise) || !strings.Contains(err.Error(), why) {
			t.Errorf("up: %v", err)
		}
		if _, err := d.Down(t.Context(), s, nil, false); !problem.Is(err, problem.Surprise) || !strings.Contains(err.Error(), why) {
			t.Errorf("down: %v", err)
		}
		d.write("site.toml", twoHosts)
		d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
	}
	identified := func(id string) string { return strings.Replace(twoHosts, "[site]", "[site]\nid = \""+id+"\"", 1) }
	strangers := strings.NewReplacer("[node.db]", "[node.sql]", "web{1..2}", "www{1..2}").Replace(twoHosts)
	refused(identified("another"), `another site that is called toykat, with the id `+id+`: db; this one has the id another`)
	refused(strangers, "has none of the nodes of this one: db, web1, web2")

	d.write("site.toml", strings.Replace(strangers, "[site]", "[site]\nid = \""+id+"\"", 1)) // it is this one
	if p, err := d.Preview(t.Context(), nil, control.PreviewOptions{}); err != nil || p.Empty() {
		t.Errorf("all nodes of a site with an id are others: %v", err)
	}
	d.must(os.WriteFile(record(other), []byte(`{"id":"b2"}`), 0o600))
	refused(twoHosts, "nodes of two sites that are both called toykat, with the ids "+id+" and b2")
	d.must(os.WriteFile(record(other), []byte("half"), 0o600))
	d.write("site.toml", twoHosts)
	if _, err := d.Preview(t.Context(), nil, control.PreviewOptions{}); err == nil || !strings.Contains(err.Error(), "whose nodes are on this host cannot be read") {
		t.Errorf("a record that cannot be read: %v", err)
	}
	for _, m := range []*machine{d.machine, other} { // a site of a former version
		d.must(os.Remove(record(m)))
	}
	d.write("site.toml", identified("a1"))
	d.up()
	if _, err := d.Stop(t.Context(), d.site(), nil); err != nil {
		t.Fatal(err)
	}
	if of, err = os.ReadFile(record(other)); err != nil || !strings.Contains(string(of), `"a1"`) {
		t.Errorf("of a site that has got an id, the host has %s (%v)", of, err)
	}
	_, err = d.Down(t.Context(), d.site(), nil, false)
	d.must(err)
	d.write("site.toml", identified("another"))
	d.up()
}
