package control_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control/nodes"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/control/way"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func statusOf(d *desk, s *site.Site) error {
	_, err := status.Read(d.Context(), d.Session, s, nil)
	return err
}

func crowdOf(d *desk, s *site.Site) error {
	_, err := nodes.NewGroup(d.Context(), d.Session, s, []string{"all"}, 1)
	return err
}

func intoOf(d *desk, s *site.Site, node string) error {
	_, err := way.Runner(d.Context(), d.Session, s, node)
	return err
}

func copyOf(d *desk, s *site.Site, node string) error {
	_, err := nodes.NewCopyJob(d.Context(), d.Session, s, []string{node + ":/etc/hosts"}, d.dir)
	return err
}

func forwardOf(d *desk, s *site.Site, node string) error {
	w, err := nodes.FindNodePort(d.Session, s, node+":80")
	if err == nil {
		_, err = w.Runner(d.Context())
	}
	return err
}

func logOf(d *desk, s *site.Site, node string) error {
	_, err := nodes.PrintNodeLogs(d.Context(), d.Session, s, node, nodes.LogOptions{}, io.Discard, io.Discard)
	return err
}

// TestOrigin: the site directory gives control over a site. A different site of the same name is
// refused as long as nodes of the first one exist, and takes nothing away from it.
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
		if _, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); !problem.Is(err,
			problem.Surprise) || !strings.Contains(err.Error(), why) {
			t.Errorf("planned: %v", err)
		}
		if _, _, err := sites.Up(t.Context(), d.Session, s, nil, sites.UpOptions{}); !problem.Is(err, problem.Surprise) ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("up: %v", err)
		}
		if _, err := sites.Down(t.Context(), d.Session, s, nil, false); !problem.Is(err, problem.Surprise) ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("down: %v", err)
		}
		one := s.Nodes[0].Name
		for what, err := range map[string]error{"status": statusOf(d, s), "exec": crowdOf(d, s), "shell": intoOf(d, s, one),
			"cp": copyOf(d, s, one), "forward": forwardOf(d, s, one), "logs": logOf(d, s, one)} {
			if !problem.Is(err, problem.Surprise) || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	untouched := func() {
		t.Helper()
		d.write("site.toml", twoHosts)
		d.must(os.WriteFile(record(other), of, 0o600))
		d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
	}
	identified := func(id string) string { return strings.Replace(twoHosts, "[site]", "[site]\nid = \""+id+"\"", 1) }
	strangers := strings.NewReplacer("[node.db]", "[node.sql]", "web{1..2}", "www{1..2}").Replace(twoHosts)
	refused(identified("another"), `another site that is called toykat, with the id `+id+
		`: db; this one has the id another`)
	refused(strangers, "has none of the nodes of this one: db, web1, web2")
	untouched()

	// now it is the same site
	d.write("site.toml", strings.Replace(strangers, "[site]", "[site]\nid = \""+id+"\"", 1))
	if p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); err != nil || p.Empty() {
		t.Errorf("all nodes of a site with an id are others: %v", err)
	}
	d.must(os.WriteFile(record(other), []byte(`{"id":"b2"}`), 0o600))
	refused(twoHosts, "nodes of two sites that are both called toykat, with the ids "+id+" and b2")
	untouched()
	d.must(os.WriteFile(record(other), []byte("half"), 0o600))
	d.write("site.toml", twoHosts)
	if _, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); err == nil ||
		!strings.Contains(err.Error(), "the record of which site owns the nodes cannot be read") {
		t.Errorf("a record that cannot be read: %v", err)
	}
	if err := statusOf(d, d.site()); err == nil ||
		!strings.Contains(err.Error(), "the record of which site owns the nodes cannot be read") ||
		!strings.Contains(err.Error(), "sv2") {
		t.Errorf("a record that cannot be read: %v", err)
	}
	for _, m := range []*machine{d.machine, other} { // a site of a former version
		d.must(os.Remove(record(m)))
	}
	d.write("site.toml", identified("a1"))
	d.up()
	if _, err := sites.Stop(t.Context(), d.Session, d.site(), nil); err != nil {
		t.Fatal(err)
	}
	if of, err = os.ReadFile(record(other)); err != nil || !strings.Contains(string(of), `"a1"`) {
		t.Errorf("of a site that has got an id, the host has %s (%v)", of, err)
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	d.write("site.toml", identified("another"))
	d.up()
}
