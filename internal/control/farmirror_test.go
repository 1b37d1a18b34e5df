package control_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/sites"
	"orrery/internal/control/unattended"
	"orrery/internal/control/volumes"
	"orrery/internal/host"
	"orrery/internal/host/schedule"
	"orrery/internal/problem"
	"orrery/internal/volume"
)

// TestFarMirrors: each host mirrors its own volumes, from its own records. Nothing is mirrored for
// a site that is down.
func TestFarMirrors(t *testing.T) {
	d, other := farDesk(t)
	text, err := os.ReadFile(d.dir + "/roles/web/role.toml")
	d.must(err)
	d.write("roles/web/role.toml", "[[volume]]\nname = \"data\"\npath = \"/srv/data\"\n"+string(text))
	mirrored := strings.Replace(twoHosts, "[network.far]",
		"[volume.data]\nmirror = \""+t.TempDir()+
			"\"\nevery = \"1h\"\n[hook.page]\non = [\"mirror-failed\"]\ncommand = [\"/bin/true\"]\n[network.far]", 1)
	d.write("site.toml", mirrored)
	d.up()
	for _, m := range []*machine{d.machine, other} {
		all, err := apply.ReadUnattended(m.dirs, "toykat", apply.TriggerMirror)
		d.must(err)
		if len(all.Of) != 2 || all.Of[0].Node != "web1" || all.Of[0].Every.Hours() != 1 ||
			!strings.HasSuffix(all.Of[1].Mirror, "/web2") {
			t.Errorf("a host mirrors %+v", all)
		}
	}
	on := func(m *machine, key string) *unattended.Host {
		return &unattended.Host{Machine: m, Dirs: m.dirs, Key: key, Say: func(err error) { t.Error(err) }, Tell: t.Logf}
	}
	tried := func(m *machine, name string) (nodes []string) {
		t.Helper()
		var failed string
		before := time.Now()
		err := on(m, "toykat").Run(t.Context(), apply.TriggerMirror, name)
		all, wrong := volume.ReadMirrorStatus(m.dirs, "toykat")
		d.must(wrong)
		for _, w := range all {
			if !w.At.Before(before) {
				nodes, failed = append(nodes, w.Node), failed+w.Problem
			}
		}
		slices.Sort(nodes)
		if (err != nil) != (failed != "") { // rsync may not be installed
			t.Errorf("%v: %v", nodes, err)
		}
		return nodes
	}
	if got := tried(other, "data"); strings.Join(got, " ") != "web1 web2" {
		t.Errorf("host sv2 mirrors volumes of %v", got)
	}
	if got := append(tried(d.machine, "data"), tried(other, "others")...); len(got) > 0 {
		t.Errorf("mirrored are volumes of %v", got)
	}
	path := apply.UnattendedPath(other.dirs, "toykat", apply.TriggerMirror)
	all, err := host.ReadJSON[apply.UnattendedPlan](path)
	d.must(err)
	good := all.Of[0].Mirror
	all.Of[0].Mirror = "/dev/null/web1"
	d.must(host.WriteJSON(path, 0o600, all))
	tried(other, "data")
	if waiting, _ := other.Waiting(); !slices.ContainsFunc(waiting,
		func(w schedule.Pending) bool { return w.Name == "hooks-toykat" }) {
		t.Errorf("of a mirror that failed, no hook is notified: %v", waiting)
	}
	all.Of[0].Mirror = good
	d.must(host.WriteJSON(path, 0o600, all))
	rows, _, err := volumes.List(t.Context(), d.Session)
	d.must(err)
	if len(rows) != 3 || rows[1].Host != "sv2" || rows[1].Idle == "" || rows[1].Last == nil {
		t.Errorf("the volumes are %+v", rows)
	}
	for key, kind := range map[string]problem.Kind{"../toykat": problem.Usage, "nothing": problem.Failed} {
		d.wantExit(on(other, key).Run(t.Context(), apply.TriggerMirror, "data"), kind)
	}
	d.Without = []string{"sv2"}
	if rows, _, err = volumes.List(t.Context(), d.Session); err != nil || len(rows) != 1 ||
		!strings.Contains(d.watch.text(), "volumes on host sv2 are left out") {
		t.Errorf("without a host, the volumes are %+v: %v", rows, err)
	}
	d.Without = nil
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	for _, m := range []*machine{d.machine, other} {
		if _, err := os.Stat(apply.UnattendedPath(m.dirs, "toykat", apply.TriggerMirror)); err == nil {
			t.Error("a host still mirrors")
		}
	}
}
