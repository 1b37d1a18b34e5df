package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control/sites"
	"orrery/internal/problem"
)

// secretive returns a site on two hosts with a secret for nodes of both hosts, and one for nodes of
// sv2.
func secretive(t *testing.T) (d *desk, other *machine) {
	t.Helper()
	d, other = farDesk(t)
	d.write("site.toml", strings.Replace(twoHosts, "[network.far]",
		"[secret.both]\ngenerate = 24\n[secret.webs]\ngenerate = 24\n[network.far]", 1))
	d.write("roles/db/role.toml", "[[secret]]\nname = \"both\"\nowner = \"0:0\"\n")
	d.write("roles/web/role.toml",
		"[[secret]]\nname = \"both\"\nowner = \"0:0\"\n[[secret]]\nname = \"webs\"\nowner = \"0:0\"\n")
	return d, other
}

// sealed returns a machine's copy of a secret, or "" if it has none.
func (m *machine) sealed(name string) string {
	text, _ := os.ReadFile(filepath.Join(m.dirs.Secrets("toykat"), name))
	return string(text)
}

// TestGeneratedOverHosts: a generated secret has the same value from every control host, and is
// stored on the hosts whose nodes need it.
func TestGeneratedOverHosts(t *testing.T) {
	d, other := secretive(t)
	d.up()
	both, webs := other.sealed("both"), other.sealed("webs")
	if len(both) != 24 || len(webs) != 24 || d.machine.sealed("both") != both || d.machine.sealed("webs") != "" {
		t.Fatalf("kept are %q and %q, and on the other host %q and %q", d.machine.sealed("both"), d.machine.sealed("webs"),
			both, webs)
	}
	again := func(of *desk) error {
		_, err := sites.Down(t.Context(), of.Session, of.site(), nil, false)
		d.must(err)
		_, _, err = sites.Up(t.Context(), of.Session, of.site(), nil, sites.UpOptions{})
		return err
	}
	d.must(os.RemoveAll(d.machine.dirs.Secrets("toykat"))) // a host has lost its copy
	elsewhere := newDesk(t)
	elsewhere.machine.others = map[string]*machine{"sv1": d.machine, "sv2": other}
	text, err := os.ReadFile(filepath.Join(d.dir, "site.toml"))
	d.must(err)
	elsewhere.write("site.toml", strings.Replace(string(text), `address = "local"`, `address = "10.8.1.1"`, 1))
	for _, role := range []string{"db", "web"} {
		text, err := os.ReadFile(filepath.Join(d.dir, "roles", role, "role.toml"))
		d.must(err)
		elsewhere.write("roles/"+role+"/role.toml", string(text))
	}
	d.must(again(elsewhere))
	if d.machine.sealed("both") != both || other.sealed("both") != both || other.sealed("webs") != webs {
		t.Error("there is a second value")
	}
	if entries, _ := os.ReadDir(elsewhere.dirs.Secrets("toykat")); len(entries) > 0 {
		t.Error("where the site is only steered from, secrets are kept")
	}

	// If hosts have different values, that is an error, and none is chosen.
	d.must(os.WriteFile(filepath.Join(d.machine.dirs.Secrets("toykat"), "both"), []byte(strings.Repeat("x", 24)), 0o600))
	if err := again(d); err == nil ||
		!strings.Contains(d.watch.text(), "hosts sv1 and sv2 keep different values of the generated secret both") {
		t.Errorf("hosts differ: %v\n%s", err, d.watch.text())
	}
	if other.sealed("both") != both {
		t.Error("a value was replaced")
	}
}

// TestSecretOfSilentHost: if a host that does not answer may have the only copy, no second value is
// generated.
func TestSecretOfSilentHost(t *testing.T) {
	d, other := secretive(t)
	d.up()
	both := other.sealed("both")
	_, err := sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	d.must(os.RemoveAll(d.machine.dirs.Secrets("toykat")))
	f, err := d.Hosts(t.Context(), d.site())
	d.must(err)
	f.All, f.Unknown = f.All[:1], []string{"sv2"}
	f.SecretKeeper().UseHosts()
	for range 2 {
		if _, err := f.SecretKeeper().Generated(t.Context(), &d.site().Secrets[0], ""); !problem.Is(err, problem.Unable) ||
			!strings.Contains(err.Error(), "may be kept on sv2") {
			t.Errorf("while sv2 is silent: %v", err)
		}
	}
	if d.machine.sealed("both") != "" {
		t.Error("a second value is kept")
	}
	d.up()
	if d.machine.sealed("both") != both {
		t.Error("there is a second value")
	}
}

// TestSecretOfStranger: a host whose nodes do not need a secret does not determine its value on
// other hosts.
func TestSecretOfStranger(t *testing.T) {
	d, other := secretive(t)
	d.must(os.MkdirAll(d.machine.dirs.Secrets("toykat"), 0o700))
	d.must(os.WriteFile(filepath.Join(d.machine.dirs.Secrets("toykat"), "webs"), []byte(strings.Repeat("x", 24)), 0o600))
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	if err == nil || !strings.Contains(d.watch.text(), "kept on host sv1, where no node needs it") ||
		other.sealed("webs") != "" {
		t.Errorf("a stranger has it: %v\n%s", err, d.watch.text())
	}
	d.must(os.Remove(filepath.Join(d.machine.dirs.Secrets("toykat"), "webs")))
	d.up()
}
