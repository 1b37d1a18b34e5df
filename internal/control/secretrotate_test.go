package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/secrets"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/plan"
	"orrery/internal/problem"
)

// rotate rotates a secret.
func (d *desk) rotate(name string) error {
	_, err := sites.Rotate(d.Context(), d.Session, d.site(), name, "")
	return err
}

// secret returns the row of a secret.
func (d *desk) secret(name string) secrets.Row {
	d.Helper()
	all, err := secrets.List(d.Context(), d.Session, d.site())
	d.must(err)
	for _, r := range all {
		if r.Secret == name {
			return r
		}
	}
	d.Fatalf("no secret %s in %+v", name, all)
	return secrets.Row{}
}

// wantSecret fails the test unless a secret has a generation, and only these nodes have an older one.
func (d *desk) wantSecret(name string, generation int, behind ...string) {
	d.Helper()
	if r := d.secret(name); r.Generation != generation || strings.Join(r.Behind, " ") != strings.Join(behind, " ") {
		d.Errorf("secret %s: %+v, want generation %d and not yet on %v", name, r, generation, behind)
	}
}

// TestRotate: a rotation makes one new value on all hosts, and applies the roles that read it, and no
// others. A second plan is empty.
func TestRotate(t *testing.T) {
	d, other := secretive(t)
	d.up()
	both, webs := other.sealed("both"), other.sealed("webs")
	d.wantSecret("both", 1)
	if r := d.secret("both"); r.From != secrets.Generated || strings.Join(r.Nodes, " ") != "db web1 web2" ||
		strings.Join(r.Roles, " ") != "db web" || r.Progress() != "3 of 3 nodes" {
		t.Errorf("%+v", r)
	}
	d.must(d.rotate("both"))
	value, rest, _ := strings.Cut(other.sealed("both"), "\n")
	if len(value) != 24 || value == both || rest != "generation 2\n" || d.machine.sealed("both") != other.sealed("both") ||
		other.sealed("webs") != webs {
		t.Errorf("hosts have %q and %q", d.machine.sealed("both"), other.sealed("both"))
	}
	if got := other.shown("21", "both"); got != value {
		t.Errorf("web1 sees %q", got)
	}
	if strings.Contains(d.watch.text(), value) || strings.Contains(d.watch.text(), both) {
		t.Error("a value was shown")
	}
	d.wantSecret("both", 2)
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	if d.must(err); !p.Empty() {
		t.Errorf("planned is %s", p.Steps[0])
	}
	d.must(d.rotate("webs"))
	d.wantSecret("webs", 2)
	d.wantSecret("both", 2)
	if d.machine.sealed("webs") != "" {
		t.Error("a host whose nodes do not need the secret has it")
	}
}

// TestRotateInterrupted: if a node fails, the next run finishes the same generation. If hosts were not
// all reached, nothing is planned until one more generation is everywhere.
func TestRotateInterrupted(t *testing.T) {
	d, other := secretive(t)
	d.up()
	other.fault.Fail("SetProgress", "web2", 1, nil)
	if err := d.rotate("both"); err == nil {
		t.Fatal("the rotation ended well")
	}
	value := other.sealed("both")
	d.wantSecret("both", 2, "web2")
	if p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); err != nil || p.Empty() {
		t.Errorf("%v", err)
	}
	d.must(d.rotate("both"))
	d.wantSecret("both", 2)
	if other.sealed("both") != value {
		t.Error("there is another value")
	}

	// killed after the first host
	d.must(os.WriteFile(filepath.Join(d.machine.dirs.Secrets("toykat"), "both"),
		[]byte(strings.Repeat("x", 24)+"\ngeneration 3\n"), 0o600))
	_, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.wantExit(err, problem.Surprise, "generation", "orrery secret rotate both")
	if r := d.secret("both"); !strings.Contains(r.Hosts, "host sv1 has generation 3") {
		t.Errorf("%+v", r)
	}
	d.must(d.rotate("both"))
	d.wantSecret("both", 4)
	if value := other.sealed("both"); strings.Contains(value, "xxx") || value != d.machine.sealed("both") {
		t.Errorf("%q", value)
	}
}

// TestRotateFile: if the file of a secret changes, up starts its next generation. No digest of it is
// stored on hosts or in records of nodes.
//
// Promise (Other hosts): Hosts and records of nodes have no digest of a secret.
func TestRotateFile(t *testing.T) {
	d, other := farDesk(t)
	file := filepath.Join(t.TempDir(), "key")
	d.must(os.WriteFile(file, []byte("first-value\n"), 0o600))
	d.write("site.toml", strings.Replace(twoHosts, "[network.far]", "[secret.key]\nfile = \""+file+"\"\n[network.far]", 1))
	for _, role := range []string{"db", "web"} {
		d.write("roles/"+role+"/role.toml", "[[secret]]\nname = \"key\"\nowner = \"0:0\"\n")
	}
	d.up()
	if info, err := os.Stat(filepath.Join(d.dirs.State, "secret-files")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others can read the marks of files: %v, %v", info, err)
	}
	d.wantSecret("key", 1)
	d.wantExit(d.rotate("key"), problem.Usage, file, "change the file, then run orrery up")
	d.must(os.WriteFile(file, []byte("second-value\n"), 0o600))
	if r := d.secret("key"); !r.Changed || r.From != secrets.File || r.Source != file {
		t.Errorf("%+v", r)
	}
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.must(err)
	if n := p.Counts()[plan.ConfigureNode]; n != 3 || !strings.Contains(p.Steps[0].Reason,
		"secret key: generation 2 instead of 1") {
		t.Errorf("planned are %d, %+v", n, p.Steps[0])
	}
	d.wantSecret("key", 1) // a preview changes nothing
	d.up()
	d.wantSecret("key", 2)
	if r := d.secret("key"); r.Changed {
		t.Errorf("%+v", r)
	}
	for _, m := range []*machine{d.machine, other} {
		if got := m.sealed("key"); got != "\ngeneration 2\n" {
			t.Errorf("a host stores %q", got)
		}
	}
	if info, err := os.Stat(secrets.FilesPath(d.dirs, "toykat")); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestRotateAsks: in production, a rotation asks. A secret that does not exist, or that no node reads, is
// not rotated.
func TestRotateAsks(t *testing.T) {
	d, other := secretive(t)
	d.wantExit(d.rotate("both"), problem.Usage, "no node that is up reads secret both")
	d.up()
	d.wantExit(d.rotate("bth"), problem.Usage, "no secret is called", "both")
	text, err := os.ReadFile(filepath.Join(d.dir, "site.toml"))
	d.must(err)
	d.write("site.toml", strings.Replace(string(text), "name = \"toykat\"", "name = \"toykat\"\nproduction = true", 1))
	value := other.sealed("both")
	d.Confirmer = refusing{}
	if err := d.rotate("both"); err == nil || other.sealed("both") != value {
		t.Errorf("%v", err)
	}
	d.wantSecret("both", 1)
	d.Without = []string{"sv2"}
	d.wantExit(d.rotate("both"), problem.Unable, "cannot be rotated without sv2")
}

// A refusing agrees to nothing.
type refusing struct{}

func (refusing) Ask(q control.Question) (bool, error) {
	return true, problem.New(problem.Refused, "refused: %s", q.Why)
}

// TestRotationInStatus: status shows which nodes a rotation has not reached.
func TestRotationInStatus(t *testing.T) {
	d, other := secretive(t)
	d.up()
	other.fault.Fail("SetProgress", "web1", 1, nil)
	if err := d.rotate("both"); err == nil {
		t.Fatal("the rotation ended well")
	}
	all, err := status.Read(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	for _, n := range all.Nodes {
		if behind := n.Node == "web1"; behind != (len(n.Rotations) == 1) {
			t.Errorf("%s: %+v", n.Node, n.Rotations)
		} else if behind && n.Rotations[0] != (status.Rotation{Secret: "both", Generation: 1, Newest: 2, On: 2, Of: 3}) {
			t.Errorf("%+v", n.Rotations)
		}
	}
}
