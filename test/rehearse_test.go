package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/test/need"
)

// TestRehearse: a site is controlled between simulated hosts with the addresses of the site file.
// One host loses power and comes back when a user asks which nodes are on it. The time without
// answers from nodes is reported. The exit status of the command is that of the rehearsal, and
// nothing is left behind.
func TestRehearse(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newExample(t, "minimal", "it-rehearse", "10.77.1.", "10.99.246.")
	text, err := os.ReadFile(filepath.Join(s.dir, "site.toml"))
	if err != nil {
		t.Fatal(err)
	}
	more := string(text) + "host = \"sv1\"\n[node.two]\nid = 12\nhost = \"sv2\"\n[host.sv1]\naddress = \"ops@10.8.1.1:2222\"\n[host.sv2]\naddress = \"root@sv2.example.org\"\n"
	if err := os.WriteFile(filepath.Join(s.dir, "site.toml"), []byte(more), 0o644); err != nil {
		t.Fatal(err)
	}
	const script = `orrery up >/dev/null 2>&1 || exit 1
hostname; orrery host ls
orrery rehearse gaps --json -- sh -c 'orrery rehearse kill sv2; sleep 0.3; orrery rehearse boot sv2; orrery up' 2>/dev/null
orrery exec two -- echo back again
orrery rehearse cut sv3
orrery rehearse slow sv1 much
exit 7`
	r := s.run("rehearse", "--", "sh", "-c", script)
	out := r.out + r.errs
	if r.status != 7 {
		t.Fatalf("it ends with %d:\n%s", r.status, out)
	}
	for _, want := range []string{"back again", "on control, in a rehearsal with sv1, sv2", "\ncontrol\n", "ops@10.8.1.1:2222",
		`no host is called "sv3"`, `"much" is not a size`} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
	var gaps struct{ Result []map[string]any }
	if err := json.NewDecoder(strings.NewReader(r.out[max(0, strings.Index(r.out, `{"version"`)):])).Decode(
		&gaps); err != nil {
		t.Errorf("%v\n%s", err, r.out)
	}
	// Whether it is silent at the end also depends on how busy this machine is in that moment.
	if len(gaps.Result) != 2 || gaps.Result[1]["node"] != "two" || gaps.Result[1]["gaps"] == 0.0 {
		t.Errorf("of a node whose host was killed is told %v", gaps.Result)
	}
	s.run("rehearse", "cut", "sv1").want(2, "no rehearsal of site it-rehearse is under way")
	if left := glob(filepath.Join(need.State(), "rehearsals", "it-rehearse*")); len(left) > 0 {
		t.Errorf("a rehearsal has left %s", left)
	}
}

// TestRehearseMachine: simulated hosts can have virtual machines, which share a network with
// containers. Their kernel is built there if this machine has not built it.
func TestRehearseMachine(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newSite(t, "it-vmrehearse", `
[network.lan]
subnet  = "10.99.39.0/24"
gateway = "10.99.39.254"
[image.debian]
suite = "bookworm"
[host.sv1]
address  = "root@10.8.1.1"
underlay = "10.8.1.1"
[host.sv2]
address  = "root@10.8.1.2"
underlay = "10.8.1.2"
[node.c]
id   = 1
host = "sv1"
[node.m]
id     = 2
host   = "sv2"
engine = "kvm"
memory = "192MiB"
`, nil)
	s.run("rehearse", "--", "sh", "-c",
		"orrery up >/dev/null && orrery exec c -- ping -c 1 -W 30 10.99.39.2 && orrery exec m -- uname -r && orrery down").
		want(0, "1 received", `m \| .*cloud`, "2 nodes taken down")
}
