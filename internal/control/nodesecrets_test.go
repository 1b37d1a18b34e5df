package control_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/nodes"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/control/twins"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
)

// nodeSecrets returns a site on two hosts of which each node has its own key.
func nodeSecrets(t *testing.T, declared string) (d *desk, other *machine) {
	t.Helper()
	d, other = farDesk(t)
	d.write("site.toml", strings.Replace(twoHosts, "[network.far]", "[secret.key]\n"+declared+"\n[network.far]", 1))
	for _, role := range []string{"db", "web"} {
		d.write("roles/"+role+"/role.toml", "[[secret]]\nname = \"key\"\nowner = \"0:0\"\n")
	}
	return d, other
}

// secretNames returns the names of the secrets that a machine stores.
func (m *machine) secretNames() string {
	var names []string
	entries, _ := os.ReadDir(m.dirs.Secrets("toykat"))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// shown returns a secret as a node sees it.
func (m *machine) shown(id, name string) string {
	text, _ := os.ReadFile(filepath.Join(m.dirs.Run, "sites", "toykat", id, "secrets", name))
	return string(text)
}

// TestNodeSecrets: each node has its own value, which only its host stores. A second plan is empty, and the
// value stays the same when the node is down.
func TestNodeSecrets(t *testing.T) {
	d, other := nodeSecrets(t, "generate = 24\nper = \"node\"")
	d.up()
	if near, far := d.machine.secretNames(), other.secretNames(); near != "key@db" || far != "key@web1 key@web2" {
		t.Fatalf("stored are %s, and on the other host %s", near, far)
	}
	values := []string{d.machine.sealed("key@db"), other.sealed("key@web1"), other.sealed("key@web2")}
	if len(values[0]) != 24 || len(slices.Compact(slices.Sorted(slices.Values(values)))) != 3 {
		t.Errorf("the values are %q", values)
	}
	if seen := []string{d.machine.shown("11", "key"), other.shown("21", "key"), other.shown("22", "key")}; !slices.Equal(
		seen, values) {
		t.Errorf("the nodes see %q", seen)
	}
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	if d.must(err); !p.Empty() {
		t.Errorf("planned is %s", p.Steps[0])
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	d.up()
	if d.machine.sealed("key@db") != values[0] || other.sealed("key@web2") != values[2] {
		t.Error("values have changed")
	}
	if r := d.secret("key"); r.Generation != 1 || !maps.Equal(r.PerNode, map[string]int{"db": 1, "web1": 1, "web2": 1}) ||
		r.Progress() != "3 of 3 nodes" {
		t.Errorf("%+v", r)
	}
}

// TestRotateNodeSecret: the values of all nodes are rotated, or that of one, and nothing counts as unfinished then.
func TestRotateNodeSecret(t *testing.T) {
	d, other := nodeSecrets(t, "format = \"hex\"\nper = \"node\"")
	d.up()
	db, web1, web2 := d.machine.sealed("key@db"), other.sealed("key@web1"), other.sealed("key@web2")
	_, err := sites.Rotate(t.Context(), d.Session, d.site(), "key", "web1")
	d.must(err)
	if d.machine.sealed("key@db") != db || other.sealed("key@web2") != web2 ||
		!strings.HasSuffix(other.sealed("key@web1"), "\ngeneration 2\n") ||
		strings.HasPrefix(other.sealed("key@web1"), web1) {
		t.Errorf("web1 has %q", other.sealed("key@web1"))
	}
	if value, _, _ := strings.Cut(other.sealed("key@web1"), "\n"); other.shown("21", "key") != value {
		t.Errorf("web1 sees %q", other.shown("21", "key"))
	}
	if r := d.secret("key"); r.Generation != 2 || len(r.Behind) > 0 ||
		!maps.Equal(r.PerNode, map[string]int{"db": 1, "web1": 2, "web2": 1}) {
		t.Errorf("%+v", r)
	}
	all, err := status.Read(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	for _, n := range all.Nodes {
		if len(n.Rotations) > 0 {
			t.Errorf("%s: %+v", n.Node, n.Rotations)
		}
	}
	d.must(d.rotate("key"))
	if r := d.secret("key"); len(r.Behind) > 0 || !maps.Equal(r.PerNode, map[string]int{"db": 2, "web1": 3, "web2": 2}) {
		t.Errorf("%+v", r)
	}
	if strings.HasPrefix(d.machine.sealed("key@db"), db) || d.machine.secretNames() != "key@db" {
		t.Error("db has its old value, or the host another one")
	}
	_, err = sites.Rotate(t.Context(), d.Session, d.site(), "key", "web3")
	d.wantExit(err, problem.Usage, "no node called", "web")
}

// TestRotateNodeOfShared: a secret with one value for all nodes is not rotated on one node.
func TestRotateNodeOfShared(t *testing.T) {
	d, _ := secretive(t)
	_, err := sites.Rotate(t.Context(), d.Session, d.site(), "both", "db")
	d.wantExit(err, problem.Usage, "one value for all nodes", `per = "node"`)
}

// TestRemovedNodeSecret: the value of a removed node is forgotten, and a new node gets one at the next up.
func TestRemovedNodeSecret(t *testing.T) {
	d, other := nodeSecrets(t, "generate = 24\nper = \"node\"")
	d.up()
	web1, web2 := other.sealed("key@web1"), other.sealed("key@web2")
	text, err := os.ReadFile(filepath.Join(d.dir, "site.toml"))
	d.must(err)
	d.write("site.toml", strings.Replace(string(text), "web{1..2}", "web{1..1}", 1))
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.must(err)
	if !slices.Contains(p.Warnings, "node web2 is removed, and its own value of secret key is deleted") {
		t.Errorf("%q", p.Warnings)
	}
	d.up()
	if got := other.secretNames(); got != "key@web1" || other.sealed("key@web1") != web1 {
		t.Errorf("stored are %s", got)
	}
	d.write("site.toml", strings.Replace(string(text), "web{1..2}", "web{1..3}", 1))
	d.up()
	if got := other.secretNames(); got != "key@web1 key@web2 key@web3" || other.sealed("key@web2") == web2 ||
		other.sealed("key@web1") != web1 {
		t.Errorf("stored are %s", got)
	}
}

// TestSecretOfMovedNode: a node that moves to another host takes its value along, and its former host forgets it.
func TestSecretOfMovedNode(t *testing.T) {
	d, other := nodeSecrets(t, "generate = 24\nper = \"node\"")
	d.up()
	db := d.machine.sealed("key@db")
	text, err := os.ReadFile(filepath.Join(d.dir, "site.toml"))
	d.must(err)
	moved := strings.Replace(string(text), `host  = "sv1"`, `host  = "sv2"`, 1)
	d.write("site.toml", strings.Replace(moved, "net.lan", "net.far", 1))
	d.up()
	if other.sealed("key@db") != db || d.machine.secretNames() != "" {
		t.Errorf("stored are %s, and on the other host %s", d.machine.secretNames(), other.secretNames())
	}
}

// TestPerNodeLater: a secret of which each node begins to have its own value has new values on all nodes.
func TestPerNodeLater(t *testing.T) {
	d, other := nodeSecrets(t, "generate = 24")
	d.up()
	shared := d.machine.sealed("key")
	text, err := os.ReadFile(filepath.Join(d.dir, "site.toml"))
	d.must(err)
	d.write("site.toml", strings.Replace(string(text), "generate = 24", "generate = 24\nper = \"node\"", 1))
	d.up()
	if d.machine.shown("11", "key") == shared || d.machine.shown("11", "key") == other.shown("21", "key") {
		t.Error("a node has the former value, or that of another node")
	}
}

// TestCertificates: up renews a certificate of which less than a third of the validity is left, and the plan
// says why. A control host without the site's authority makes no second one.
//
// Promise (Other hosts): The key of a site's certificate authority is on the control host only, and
// a second authority is not made by accident. With secret.TestCertificate.
func TestCertificates(t *testing.T) {
	d, other := nodeSecrets(t, "format = \"x509\"\nper = \"node\"")
	d.up()
	if got := d.machine.shown("11", "key"); strings.Count(got, "BEGIN PRIVATE KEY") != 1 ||
		strings.Count(got, "BEGIN CERTIFICATE") != 2 || !strings.HasSuffix(got, "-----\n") {
		t.Fatalf("the node sees %q", got)
	}
	if _, err := os.Stat(secret.AuthorityPath(other.dirs, "toykat")); err == nil {
		t.Error("another host has the key of the authority")
	}
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	if d.must(err); !p.Empty() {
		t.Errorf("planned is %s", p.Steps[0])
	}

	s := d.site()
	keys := secret.NewKeyring(s, d.dirs)
	keys.Now = func() time.Time { return time.Now().Add(-300 * 24 * time.Hour) }
	x, _ := s.Secret("key")
	old, err := keys.Generate(x, "web1")
	d.must(err)
	web2, db := other.sealed("key@web2"), d.machine.sealed("key@db")
	d.must(secret.Store{Dir: other.dirs.Secrets("toykat")}.Replace("key@web1", secret.Stored{Value: old, Generation: 1}))
	p, err = sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.must(err)
	const renewed = "secret key of node web1 is renewed: its certificate is valid until"
	if why := strings.Join(p.Warnings, "\n"); !strings.Contains(why, renewed) || strings.Contains(why, "web2") ||
		len(p.Steps) == 0 || !strings.Contains(p.Steps[0].Reason, "secret key: generation 2") {
		t.Errorf("%s\n%+v", why, p.Steps)
	}
	d.up()
	if strings.HasPrefix(other.sealed("key@web1"), old) || other.sealed("key@web2") != web2 ||
		d.machine.sealed("key@db") != db {
		t.Error("it is not renewed, or another one is")
	}
	d.wantNodeGeneration("key", "web1", 2)
	p, err = sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	if d.must(err); !p.Empty() {
		t.Errorf("planned is %s", p.Steps[0])
	}

	d.must(os.Remove(secret.AuthorityPath(d.dirs, "toykat")))
	text, err := os.ReadFile(filepath.Join(d.dir, "site.toml"))
	d.must(err)
	d.write("site.toml", strings.Replace(string(text), "web{1..2}", "web{1..3}", 1))
	if _, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{}); err == nil ||
		!strings.Contains(d.watch.text(), "the certificate authority of site toykat is not on this machine") {
		t.Errorf("%v\n%s", err, d.watch.text())
	}
	if _, err := os.Stat(secret.AuthorityPath(d.dirs, "toykat")); err == nil {
		t.Error("there is a second authority")
	}
}

// wantNodeGeneration fails the test unless the value of a node has a generation.
func (d *desk) wantNodeGeneration(name, node string, generation int) {
	d.Helper()
	if r := d.secret(name); r.PerNode[node] != generation {
		d.Errorf("%+v", r)
	}
}

// TestFormatLater: a value that is stored in another format than declared is not used until the secret is rotated.
func TestFormatLater(t *testing.T) {
	d, other := nodeSecrets(t, "generate = 24")
	d.up()
	text, err := os.ReadFile(filepath.Join(d.dir, "site.toml"))
	d.must(err)
	d.write("site.toml", strings.Replace(string(text), "generate = 24", "format = \"uuid\"", 1))
	_, _, err = sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	d.wantExit(err, problem.Surprise, `it is not in the format "uuid"`, "orrery secret rotate key makes a new value")
	d.must(d.rotate("key"))
	value, _, _ := strings.Cut(other.sealed("key"), "\n")
	d.must(secret.HasFormat(&site.Secret{Name: "key", Format: secretspec.UUID}, value))
	if d.machine.shown("11", "key") != value {
		t.Error("the node sees another value")
	}
}

// TestSecretOfPlacedNode: of nodes that may be on any host, only the host that has the node stores its value. A node
// in quarantine has the value of the live one. After a move only the new host has it, and nothing is left to do.
func TestSecretOfPlacedNode(t *testing.T) {
	p := placing(t, true)
	text, err := os.ReadFile(filepath.Join(p.dir, "site.toml"))
	p.must(err)
	p.write("site.toml", strings.Replace(string(text), "[network.far]",
		"[secret.key]\nformat = \"base64\"\nper = \"node\"\n[network.far]", 1))
	role, err := os.ReadFile(filepath.Join(p.dir, "roles/web/role.toml"))
	p.must(err)
	p.write("roles/web/role.toml", string(role)+"[[secret]]\nname = \"key\"\nowner = \"0:0\"\n")
	p.up()
	machines := map[string]*machine{"sv1": p.machine, "sv2": p.machine.others["sv2"]}
	from := p.on["web1"]
	to := map[string]string{"sv1": "sv2", "sv2": "sv1"}[from]
	value := machines[from].sealed("key@web1")
	want := func(what string, at, other string) {
		t.Helper()
		if machines[at].sealed("key@web1") != value || machines[other].sealed("key@web1") != "" {
			t.Errorf("%s: stored are %s, and on the other host %s", what, machines[at].secretNames(), machines[other].secretNames())
		}
	}
	want("up", from, to)
	if value == "" || p.on["web2"] == from {
		t.Fatalf("the value is %q, and both nodes are on %s", value, from)
	}
	p.stage(700)
	want("staged", from, to)
	p.turnTo(700)
	want("switched", from, to)
	_, err = nodes.Move(t.Context(), p.Session, p.site(), []string{"web1"}, to)
	p.must(err)
	want("moved", to, from)
	p.up()
	plan, err := sites.Preview(t.Context(), p.Session, nil, sites.PreviewOptions{})
	if p.must(err); !plan.Empty() {
		t.Errorf("planned is %s", plan.Steps[0])
	}
	if machines[to].shown("700021", "key") != value {
		t.Errorf("the node sees %q", machines[to].shown("700021", "key"))
	}
	want("up again", to, from)
}

// keyAndCertificate makes each node of two hosts have its own key and certificate.
func (d *desk) keyAndCertificate() {
	d.Helper()
	d.write("site.toml", strings.Replace(twoHosts, "[network.far]",
		"[secret.key]\nformat = \"hex\"\nper = \"node\"\n[secret.tls]\nformat = \"x509\"\nper = \"node\"\n[network.far]", 1))
	for _, role := range []string{"db", "web"} {
		d.write("roles/"+role+"/role.toml",
			"[[secret]]\nname = \"key\"\nowner = \"0:0\"\n[[secret]]\nname = \"tls\"\nowner = \"0:0\"\n")
	}
}

// storedFor returns a machine's copy of a secret of a site or twin, or "" if it has none.
func (m *machine) storedFor(key, stored string) string {
	text, _ := os.ReadFile(filepath.Join(m.dirs.Secrets(key), stored))
	return string(text)
}

// TestTwinNodeSecrets: a twin has its own values. With copies of the volumes it has those of the original, but always
// its own certificates and certificate authority.
func TestTwinNodeSecrets(t *testing.T) {
	d, other := farDesk(t)
	d.keyAndCertificate()
	d.up()
	for name, volumes := range map[string]string{"new": site.CopyEmpty, "same": site.CopySnapshot} {
		twin := "toykat." + name
		for _, m := range []*machine{d.machine, other} {
			m.of(twin).Addresses = m.of("toykat").Addresses
		}
		of := twinOf("toykat", d.dir, name)
		of.Volumes = volumes
		_, _, err := twins.Create(t.Context(), d.Session, of)
		d.must(err)
		for stored, m := range map[string]*machine{"key@db": d.machine, "key@web1": other, "tls@db": d.machine,
			"tls@web2": other} {
			value, original := m.storedFor(twin, stored), m.storedFor("toykat", stored)
			same := strings.HasPrefix(stored, "key") && name == "same"
			if value == "" || original == "" || (value == original) != same {
				t.Errorf("twin %s: %s is %.20q, and that of the original %.20q", name, stored, value, original)
			}
		}
		if d.machine.storedFor(twin, "key@web1") != "" || other.storedFor(twin, "key@db") != "" {
			t.Errorf("twin %s: a host stores a secret of another host's node", name)
		}
		ours, err := os.ReadFile(secret.AuthorityPath(d.dirs, twin))
		d.must(err)
		original, err := os.ReadFile(secret.AuthorityPath(d.dirs, "toykat"))
		if d.must(err); string(original) == string(ours) {
			t.Errorf("twin %s has the certificate authority of the original", name)
		}
	}
}

// TestRestoreNodeSecrets: a restore gives each host the values of its own nodes only, also if nodes are now on other
// hosts, and no host gets the certificate authority.
func TestRestoreNodeSecrets(t *testing.T) {
	source, second := farDisks(t)
	source.keyAndCertificate()
	source.up()
	key, public := identity(t)
	to := filepath.Join(t.TempDir(), "backups") + "/"
	_, err := backups.Take(t.Context(), source.Session, nil, to, backups.Options{Keys: []string{public}})
	source.must(err)

	d := diskDesk(t)
	one, two := newMachine(t), newMachine(t)
	one.disk, two.disk = true, true
	d.machine.others = map[string]*machine{"sv2": one, "sv3": two}
	d.must(os.RemoveAll(d.dir))
	d.must(os.CopyFS(d.dir, os.DirFS(source.dir)))
	d.write("site.toml", strings.NewReplacer("sv1", "sv3", `address = "local"`, `address = "10.8.1.3"`).Replace(
		string(source.read("site.toml"))))
	for at, m := range map[string]*machine{"10.8.1.2/24": one, "10.8.1.3/24": two} {
		m.of("toykat").Addresses = []observe.Address{{Prefix: at, Link: "eth0", MTU: 1500}}
	}
	_, err = backups.Restore(t.Context(), d.Session, to, control.RestoreOptions{Dir: d.dir, Identity: key})
	d.must(err)
	if one.secretNames() != "key@web1 key@web2 tls@web1 tls@web2" || two.secretNames() != "key@db tls@db" {
		t.Errorf("stored are %s, and on the other host %s", one.secretNames(), two.secretNames())
	}
	for stored, m := range map[string][2]*machine{"key@db": {two, source.machine}, "tls@db": {two, source.machine},
		"key@web2": {one, second}, "tls@web1": {one, second}} {
		if m[0].sealed(stored) != m[1].sealed(stored) {
			t.Errorf("%s is another", stored)
		}
	}
	for _, m := range []*machine{one, two} {
		if _, err := os.Stat(secret.AuthorityPath(m.dirs, "toykat")); err == nil {
			t.Error("a host has the certificate authority")
		}
	}
}
