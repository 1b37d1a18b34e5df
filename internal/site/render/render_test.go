package render

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
	"orrery/internal/site/twin"
)

func observatory() *site.Site {
	nic := func(network, address string) site.NIC {
		return site.NIC{Network: network, Address: netip.MustParseAddr(address)}
	}
	return &site.Site{
		Name: "karoo", Owner: "sdp", Production: true, Vars: map[string]any{"array": "KAT-7"},
		Roles: []site.Role{{Name: "base"}, {Name: "receptor", NeedsRoles: []string{"base"}}, {Name: "db"}},
		Nodes: []site.Node{
			{
				Name: "db", ID: 101, Roles: []string{"db"}, Host: "sv1", Groups: []string{"system"},
				NICs: []site.NIC{nic("cam", "10.1.0.101")},
			},
			{
				Name: "receptor1", ID: 201, Roles: []string{"receptor"}, Vars: map[string]any{"dish": 13.5},
				Limits: site.Limits{Cpus: 1.5, Memory: 1 << 30},
				NICs:   []site.NIC{nic("cam", "10.1.0.201"), nic("data", "10.2.0.201")}, Groups: []string{"receptors", "system"},
			},
			{Name: "receptor2", ID: 202, Roles: []string{"receptor"}, NICs: []site.NIC{nic("cam", "10.1.0.202")},
				Groups: []string{"receptors"}},
		},
	}
}

var portal = &site.Role{
	Name: "portal", Dir: "roles/portal", Env: map[string]string{"PORT": "80"},
	Secrets: []site.SecretUse{{Name: "db_password"}},
}

func fill(t *testing.T, template, node string, secrets Secrets) (Text, error) {
	t.Helper()
	f := &site.File{Path: "/etc/x", Template: "x.tmpl", Content: []byte(template)}
	return New(observatory()).File(portal, f, node, secrets)
}

func TestTemplates(t *testing.T) {
	for template, want := range map[string]string{
		`{{.Node.Name}} {{.Node.ID}} {{.Node.Host}} {{.Node.Address}}`:                   "receptor1 201  10.1.0.201",
		`{{.Node.Roles}} {{.Node.Groups}} {{.Node.Cpus}} {{.Node.Memory}}`:               "[base receptor] [receptors system] 1.5 1073741824",
		`{{.Node.Vars.dish}} {{.Node.Addresses.data}}`:                                   "13.5 10.2.0.201",
		`{{.Site.Name}} {{.Site.Owner}} {{.Site.Production}} {{.Site.Vars.array}}`:       "karoo sdp true KAT-7",
		`{{.Role}} {{.Env.PORT}}`:                                                        "portal 80",
		`{{range .Nodes}}{{.Name}} {{end}}`:                                              "db receptor1 receptor2 ",
		`{{range peers "receptor"}}{{.Address}} {{end}}`:                                 "10.1.0.201 10.1.0.202 ",
		`{{len (peers "base")}} {{len (peers "nobody")}}`:                                "2 0",
		`{{range select "role=receptor and group=system"}}{{.Name}}{{end}}`:              "receptor1",
		`{{range select "receptor2"}}{{.ID}}{{end}}{{range select "receptor2"}}.{{end}}`: "202.",
		`{{(node "db").Address}} {{address (node "db") "cam"}}`:                          "10.1.0.101 10.1.0.101",
		`{{address .Node "data"}}`:                                                       "10.2.0.201",
		`{{json .Node.Groups}} {{json .Site.Vars}}`:                                      `["receptors","system"] {"array":"KAT-7"}`,
		`{{join "," .Node.Groups}} {{join "," (peers "receptor")}} {{join "," 3}}`:       "receptors,system receptor1,receptor2 3",
		`{{quote .Node.Name}} {{quote "a\"b"}}`:                                          `"receptor1" "a\"b"`,
		"no template at all $HOME \\n":                                                   "no template at all $HOME \\n",
	} {
		text, err := fill(t, template, "receptor1", Placeholder)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		if string(text.Content) != want || text.Secret {
			t.Errorf("%s\ngot  %q, secret %t\nwant %q", template, text.Content, text.Secret, want)
		}
	}
}

// TestTwin: templates find the substitute of a node by the node's name. An error distinguishes
// nodes that the twin leaves out from nodes that do not exist.
func TestTwin(t *testing.T) {
	s := observatory()
	s.Roles = append(s.Roles, site.Role{Name: "receptor-sim"})
	s.Releases = []site.Release{{Number: 701}}
	s.Nodes[1].SimulatedBy = "receptor-sim"
	for _, c := range []struct {
		twin.Options
		template, want string
	}{
		{twin.Options{Name: "toy", Collapse: true},
			`{{.Site.Name}} {{.Site.Twin}} {{(node "receptor2").Name}} {{len (select "receptor2")}}`, "karoo toy db 1"},
		{twin.Options{Name: "dev1", Release: 701},
			`{{.Node.ID}} {{.Node.Release}}{{range peers "receptor"}} {{.Name}}{{end}}`, "101 701 receptor1 receptor2"},
		{twin.Options{Name: "dev1"}, `{{range peers "receptor"}}{{.Name}} {{.Roles}} {{end}}`,
			"receptor1 [receptor-sim] receptor2 [base receptor] "},
		{twin.Options{Name: "dev1", Only: []string{"db"}}, `{{len (select "role=receptor")}} {{len (peers "receptor")}}`,
			"0 0"},
		{twin.Options{Name: "dev1", Only: []string{"db"}}, `{{node "receptor1"}}`, `node "receptor1" is not in twin dev1`},
		{twin.Options{Name: "dev1", Only: []string{"db"}}, `{{node "nobody"}}`, `no node is called "nobody"`},
	} {
		made, err := twin.New(s, c.Options)
		if err != nil {
			t.Fatal(err)
		}
		text, err := New(made).File(portal, &site.File{Path: "/etc/x", Template: "x.tmpl", Content: []byte(c.template)},
			"db", Placeholder)
		got := string(text.Content)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q, not %q", c.template, got, c.want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for template, want := range map[string]string{
		"a\nb\n{{.Nonsense}}":                   "roles/portal/x.tmpl:3: ",
		"{{.Env.NONE}}":                         "roles/portal/x.tmpl:1: ",
		"\n{{.Site.Vars.none}}":                 "roles/portal/x.tmpl:2: ",
		"\n{{if}}":                              "roles/portal/x.tmpl:2: ",
		"{{range .Nodes}}":                      "roles/portal/x.tmpl:1: ",
		"{{nosuch 1}}":                          "there is no function nosuch",
		`{{node "nobody"}}`:                     `no node is called "nobody"`,
		`{{address .Node "moon"}}`:              `node receptor1 is not on network "moon"`,
		"\n\n{{secret \"other\"}}":              "roles/portal/x.tmpl:3: ",
		`{{secret "other"}} `:                   `role portal has no [[secret]] named "other"`,
		`{{range select "role="}}{{end}}`:       "roles/portal/x.tmpl:1: ",
		`{{range select "role=none"}}{{end}}`:   "none",
		`{{range select "nobody"}}{{.}}{{end}}`: "nobody",
	} {
		_, err := fill(t, template, "receptor1", Placeholder)
		var p *problem.Problem
		if !errors.As(err, &p) || p.Kind != problem.Mistake || p.Cure == "" {
			t.Errorf("%q is no mistake with a cure: %v", template, err)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "roles/portal/x.tmpl:") {
			t.Errorf("%q: %v", template, err)
		}
	}
}

func TestSecrets(t *testing.T) {
	real := func(name, _ string) (string, error) { return "hunter2 of " + name, nil }
	text, err := fill(t, `password={{secret "db_password"}}`, "db", real)
	if err != nil || string(text.Content) != "password=hunter2 of db_password" || !text.Secret {
		t.Errorf("got %q, secret %t, %v", text.Content, text.Secret, err)
	}
	text, err = fill(t, `password={{secret "db_password"}}`, "db", Placeholder)
	if err != nil || string(text.Content) != "password=<secret db_password>" || !text.Secret {
		t.Errorf("got %q, secret %t, %v", text.Content, text.Secret, err)
	}
	failed := errors.New("pass is locked")
	locked := func(string, string) (string, error) { return "", failed }
	if _, err := fill(t, `{{secret "db_password"}}`, "db", locked); err == nil ||
		!strings.Contains(err.Error(), "pass is locked") {
		t.Errorf("a secret that cannot be had: %v", err)
	}
}

// TestReaders: a template gets a secret only if its role is among the readers, even if it lists the secret, and
// only the parts that the format has. A plan contains the names of parts and not the parts.
//
// Promise (Other hosts): A template of a role that is not among the readers of a secret is not
// rendered. With site/sitefile.TestReaders.
func TestReaders(t *testing.T) {
	s := observatory()
	s.Secrets = []site.Secret{{Name: "db_password", Readers: []string{"portal", "db"}},
		{Name: "hidden", Readers: []string{"db"}}, {Name: "host", Format: secretspec.SSH},
		{Name: "tls", Format: secretspec.X509}}
	role := *portal
	role.Secrets = nil
	for _, x := range s.Secrets {
		role.Secrets = append(role.Secrets, site.SecretUse{Name: x.Name})
	}
	for template, want := range map[string]string{
		`{{secret "db_password"}}`:                      "<secret db_password>",
		`{{fingerprint "tls"}} {{scram "db_password"}}`: "<fingerprint of secret tls> <scram of secret db_password>",
		`{{public_key "host"}}`:                         "<public_key of secret host>",
		`{{private_key "tls"}}`:                         "<private_key of secret tls>",
		`{{certificate "tls"}}{{ca "tls"}}`:             "<certificate of secret tls><ca of secret tls>",
		"\n{{secret \"hidden\"}}":                       `x.tmpl:2: template: secret: role portal is not`,
		`{{fingerprint "hidden"}}`:                      `not among the readers of secret "hidden"`,
		`{{scram "tls"}}`:                               `secret "tls" has no scram: its format is "x509"`,
		`{{public_key "tls"}}`:                          `secret "tls" has no public_key`,
		`{{ca "host"}}`:                                 `secret "host" has no ca`,
		`{{fingerprint "other"}}`:                       `role portal has no [[secret]] named "other"`,
	} {
		f := &site.File{Path: "/etc/x", Template: "x.tmpl", Content: []byte(template)}
		text, err := New(s).File(&role, f, "db", Placeholder)
		got := string(text.Content)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) || err == nil && !text.Secret {
			t.Errorf("%s: %q, secret %t", template, got, text.Secret)
		}
	}
}

// TestModeOfSecrets: a file that contains a secret is private unless the role declares a mode.
func TestModeOfSecrets(t *testing.T) {
	for _, c := range []struct {
		unsaid, secret bool
		want           uint32
	}{{true, true, 0o600}, {true, false, 0o644}, {false, true, 0o644}, {false, false, 0o644}} {
		if got := (site.File{Mode: 0o644, Unsaid: c.unsaid}).ModeFor(c.secret); got != c.want {
			t.Errorf("%+v: %04o", c, got)
		}
	}
}

// TestSecretsOfOneReachNoOther: a template is parsed once for all nodes and callers, but neither
// the values of secrets nor the flag may leak from one execution to the next.
func TestSecretsOfOneReachNoOther(t *testing.T) {
	v := New(observatory())
	f := &site.File{Template: "x.tmpl", Content: []byte(`{{if eq .Node.Name "db"}}{{secret "db_password"}}{{end}}`)}
	real := func(string, string) (string, error) { return "hunter2", nil }
	for _, c := range []struct {
		node    string
		secrets Secrets
		want    string
		secret  bool
	}{{"db", real, "hunter2", true}, {"db", Placeholder, "<secret db_password>", true}, {"receptor1", real, "", false},
		{"db", real, "hunter2", true}} {
		text, err := v.File(portal, f, c.node, c.secrets)
		if err != nil || string(text.Content) != c.want || text.Secret != c.secret {
			t.Errorf("node %s: got %q, secret %t, %v", c.node, text.Content, text.Secret, err)
		}
	}
}

func TestRolesDoNotShareTemplates(t *testing.T) {
	v := New(observatory())
	other := &site.Role{Name: "other", Dir: "roles/other"}
	a, _ := v.File(portal, &site.File{Template: "x.tmpl", Content: []byte("a")}, "db", Placeholder)
	b, _ := v.File(other, &site.File{Template: "x.tmpl", Content: []byte("b")}, "db", Placeholder)
	if string(a.Content)+string(b.Content) != "ab" {
		t.Errorf("got %q and %q", a.Content, b.Content)
	}
}
