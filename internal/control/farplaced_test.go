package control_test

import (
	"strings"
	"testing"

	"orrery/internal/control/nodes"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/observe"
)

// placed is a site on two hosts whose nodes have no host in the site file. A template in each node
// shows the hosts of all nodes.
type placed struct {
	*desk
	on    map[string]string // node name to host name
	drift bool              // also look for drift
}

func placing(t *testing.T, disks bool) *placed {
	t.Helper()
	d, other := newDesk(t), newMachine(t)
	if disks {
		d, other.disk = diskDesk(t), true
	}
	d.machine.others = map[string]*machine{"sv2": other}
	d.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.1/24", Link: "eth0", MTU: 1500}}
	other.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.2/24", Link: "eth0", MTU: 1500}}
	d.write("site.toml", strings.Replace(twoHosts, "roles = [\"web\"]\nhost  = \"sv2\"\n", "roles = [\"web\"]\n", 1)+
		"[release.700]\n")
	d.tellWhere("web")
	d.up()
	p := &placed{d, map[string]string{"web1": "sv1", "web2": "sv1"}, !disks}
	listed, err := other.of("toykat").List(t.Context(), "toykat")
	d.must(err)
	for _, n := range listed {
		p.on[n.Name] = "sv2"
	}
	if len(listed) != 1 {
		t.Fatalf("on sv2 are %d nodes", len(listed))
	}
	return p
}

// tellWhere adds a template to a role that shows the hosts of all nodes.
func (d *desk) tellWhere(role string) {
	d.write("roles/"+role+"/role.toml", "[[file]]\npath = \"/etc/where\"\ntemplate = \"where\"\n")
	d.write("roles/"+role+"/where", "{{ .Node.Host }}:{{ range .Nodes }} {{ .Name }}@{{ .Host }}{{ end }}")
}

// want wants that nodes say where they are, and that nothing is to be done.
func (p *placed) want(what string) {
	p.Helper()
	for node, host := range p.on {
		p.wantSaid(node, "/etc/where", host+": db@sv1 web1@"+p.on["web1"]+" web2@"+p.on["web2"])
	}
	if plan, err := sites.Preview(p.Context(), p.desk.Session, nil, sites.PreviewOptions{Probe: p.drift}); err != nil ||
		!plan.Empty() || len(plan.Warnings) > 0 {
		p.Errorf("%s: a plan: %v\n%v, which warns of %q", what, err, plan, plan.Warnings)
	}
	if !p.drift {
		return
	}
	status, err := status.Read(p.Context(), p.desk.Session, p.site(), nil)
	p.must(err)
	p.must(status.Probe(p.Context()))
	for _, n := range status.Nodes {
		if len(n.Drift) > 0 {
			p.Errorf("%s: node %s has drifted: %+v", what, n.Node, n.Drift)
		}
	}
}

// TestPlacedInTemplates: templates get the host of an automatically placed node in the plan, in the
// steps, and when a release is compared again.
func TestPlacedInTemplates(t *testing.T) {
	p := placing(t, false)
	p.want("up")
	p.stage(700)
	p.turnTo(700)
	p.want("release 700")
	_, err := releases.Rollback(t.Context(), p.desk.Session, p.site(), nil)
	p.must(err)
	p.want("rollback")
	staged, err := releases.Stage(t.Context(), p.desk.Session, p.site(), []string{"web1"},
		releases.StageOptions{Release: 700})
	p.must(err)
	for _, s := range staged.Result.Done { // db gets new copies of its volumes
		if s.Subject != "db" {
			t.Errorf("what was staged before is staged anew: %s: %s", s, s.Reason)
		}
	}
	p.turnTo(700)
	p.want("release 700 again")
}

// TestPlacedMoves: an instance in quarantine beside a moved node is compared with its state on the
// host where it was created, and moves, too.
func TestPlacedMoves(t *testing.T) {
	p := placing(t, true)
	p.stage(700)
	p.turnTo(700)
	to := map[string]string{"sv1": "sv2", "sv2": "sv1"}[p.on["web1"]]
	_, err := nodes.Move(t.Context(), p.Session, p.site(), []string{"web1"}, to)
	p.must(err)
	p.on["web1"] = to
	p.up() // updates the template of the other node
	p.want("moved")
}

// TestPlacedOnOneHost: if the site declares no host, templates get the name that this machine has
// in plans.
func TestPlacedOnOneHost(t *testing.T) {
	d := newDesk(t)
	d.tellWhere("web")
	d.up()
	d.wantSaid("web1", "/etc/where", "local: db@local web1@local web2@local")
	d.stage(700)
	d.turnTo(700)
	d.wantSaid("web1", "/etc/where", "local: db@local web1@local web2@local")
}
