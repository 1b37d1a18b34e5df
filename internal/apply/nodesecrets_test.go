package apply

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
	"orrery/internal/site/spec"
)

// shelf is a host that has stored secrets.
type shelf struct {
	SecretHost
	values map[string]string
}

func (s shelf) Read(_ context.Context, name string) (secret.Stored, error) {
	if v, ok := s.values[name]; ok {
		return secret.Stored{Value: v, Generation: 1}, nil
	}
	return secret.Stored{}, fs.ErrNotExist
}

func (s shelf) Store(ctx context.Context, name string, stored secret.Stored) error {
	return s.Replace(ctx, name, stored)
}

func (s shelf) Replace(_ context.Context, name string, stored secret.Stored) error {
	s.values[name] = stored.Value
	return nil
}

func (s shelf) Remove(_ context.Context, name string) error {
	delete(s.values, name)
	return nil
}

// perNode returns a fleet of three hosts. Node a is declared on sv1 and node b on any host. Each has its own
// value of key.
func perNode(t *testing.T, stored ...map[string]string) (*Fleet, *site.Secret) {
	f := fleetOf(&stub{}, &stub{}, &stub{})
	s := f.Site()
	s.Secrets = []site.Secret{{Name: "key", Generate: 24, Per: secretspec.PerNode}}
	s.Roles = []site.Role{{Name: "r", Secrets: []site.SecretUse{{Name: "key"}}}, {Name: "idle"}}
	s.Nodes = []site.Node{{Name: "a", Host: "sv1", Roles: []string{"r"}}, {Name: "b", Roles: []string{"r"}},
		{Name: "c", Host: "sv3", Roles: []string{"idle"}}}
	keys := secret.NewKeyring(s, host.Dirs{State: t.TempDir()})
	for i, h := range f.All {
		h.packer, h.keys = f.All[0].packer, keys
		values := map[string]string{}
		if i < len(stored) && stored[i] != nil {
			values = stored[i]
		}
		h.Host.Secrets = shelf{values: values}
	}
	return f, &s.Secrets[0]
}

// seenWith returns what the hosts report while nodes are on some of them.
func seenWith(f *Fleet, nodes map[string]string) []observe.Host {
	all := make([]observe.Host, len(f.All))
	for i, h := range f.All {
		all[i].Name = h.Name
		all[i].Secrets = map[string]int{}
		for name := range h.Host.Secrets.(shelf).values {
			all[i].Secrets[name] = 1
		}
		for node, on := range nodes {
			if on == h.Name {
				all[i].Nodes = append(all[i].Nodes, observe.Node{Node: spec.Node{Name: node}})
			}
		}
	}
	recordLocations(f, all)
	for i, h := range f.All {
		if err := checkGenerations(h, &all[i]); err != nil {
			panic(err)
		}
	}
	return all
}

// TestNodeSecretOfHosts: only the host that has or will have a node gets the node's value.
//
// Promise (Other hosts): A host gets the value of a single node only if it has or will have the
// node, and decides it only for nodes that it has or had. With apply.TestNodeSecretMoves,
// control.TestNodeSecrets, apply/remote.TestSecretsOfNodes.
func TestNodeSecretOfHosts(t *testing.T) {
	f, _ := perNode(t)
	for what, c := range map[string]struct {
		seen, planned map[string]string
		stored, want  string
	}{
		"declared":                {nil, nil, "key@a", "sv1"},
		"declared, claimed":       {map[string]string{"a": "sv2"}, nil, "key@a", "sv1"},
		"anywhere":                {nil, nil, "key@b", "sv1 sv2 sv3"},
		"seen":                    {map[string]string{"b": "sv2"}, nil, "key@b", "sv2"},
		"moves":                   {map[string]string{"b": "sv2"}, map[string]string{"b": "sv3"}, "key@b", "sv3"},
		"does not read it":        {nil, nil, "key@c", ""},
		"is not declared":         {map[string]string{"x": "sv2"}, nil, "key@x", ""},
		"of all nodes":            {nil, nil, "key", "sv1 sv2 sv3"},
		"another secret of it":    {nil, nil, "other@a", ""},
		"a name with two markers": {nil, nil, "key@a@b", ""},
	} {
		seenWith(f, c.seen)
		f.Views().SetHomes(c.planned)
		var got []string
		for _, h := range f.All {
			if h.MayNeedSecret(c.stored) {
				got = append(got, h.Name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v", what, got)
		}
		for _, h := range f.All {
			_, err := secrets{h.keys, h}.Value(t.Context(), c.stored)
			if refused := problem.Is(err, problem.Unable); refused == slices.Contains(got, h.Name) && c.stored != "key" {
				t.Errorf("%s: host %s: %v", what, h.Name, err)
			}
		}
	}
}

// TestNodeSecretMoves: the value of a node comes from the host that has the node. A host that had it decides
// only if the new host has none, and any other host never.
func TestNodeSecretMoves(t *testing.T) {
	type values = map[string]string
	seen := map[string]string{"b": "sv2"}
	for what, c := range map[string]struct {
		stored []values
		seen   map[string]string
		home   string
		want   string // "new" for a new one, or part of the error
	}{
		"new":                    {nil, nil, "sv2", "new"},
		"as it was":              {[]values{nil, {"key@b": "x"}}, seen, "sv2", "x"},
		"moves":                  {[]values{nil, {"key@b": "x"}}, seen, "sv3", "x"},
		"an old copy":            {[]values{{"key@b": "old"}, {"key@b": "x"}}, seen, "sv2", "x"},
		"was down":               {[]values{{"key@b": "x"}}, nil, "sv2", "x"},
		"two old copies":         {[]values{{"key@b": "x"}, {"key@b": "y"}}, nil, "sv3", "keep different values"},
		"the value of a sibling": {[]values{{"key@a": "x"}}, nil, "sv2", "new"},
	} {
		f, x := perNode(t, c.stored...)
		seenWith(f, c.seen)
		f.Views().SetHomes(map[string]string{"b": c.home})
		got, err := f.SecretKeeper().Generated(t.Context(), x, "b")
		switch {
		case c.want == "new":
			if err != nil || len(got.Value) != 24 {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		case err != nil && !strings.Contains(err.Error(), c.want), err == nil && got.Value != c.want:
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	f, x := perNode(t, nil, map[string]string{"key@a": "planted"})
	seenWith(f, nil)
	if _, err := f.SecretKeeper().Generated(t.Context(), x, "a"); !problem.Is(err, problem.Surprise) {
		t.Errorf("a host decides the value of a node that is declared on another: %v", err)
	}
}

// TestForgetSecrets: a host forgets the values of nodes that were removed or have moved, but never the only copy
// of a declared node, and nothing while a host does not answer.
func TestForgetSecrets(t *testing.T) {
	type values = map[string]string
	for what, c := range map[string]struct {
		stored  []values
		seen    map[string]string
		unknown []string
		left    string
	}{
		"needed": {[]values{{"key@a": "x", "key": "y"}, {"key@b": "z"}},
			map[string]string{"a": "sv1", "b": "sv2"}, nil, "key key@a,key@b,"},
		"removed": {[]values{{"key@a": "x", "key@gone": "y"}},
			map[string]string{"a": "sv1"}, nil, "key@a,,"},
		"exists": {[]values{{"key@a": "x", "key@gone": "y"}},
			map[string]string{"a": "sv1", "gone": "sv2"}, nil, "key@a key@gone,,"},
		"moved":             {[]values{{"key@b": "x"}, {"key@b": "x"}}, map[string]string{"b": "sv2"}, nil, ",key@b,"},
		"moved, not copied": {[]values{{"key@b": "x"}}, map[string]string{"b": "sv2"}, nil, "key@b,,"},
		"down":              {[]values{{"key@a": "x"}}, nil, nil, "key@a,,"},
		"no longer read":    {[]values{nil, nil, {"key@c": "x"}}, nil, nil, ",,"},
		"a host is silent":  {[]values{{"key@gone": "y"}}, nil, []string{"sv4"}, "key@gone,,"},
	} {
		f, _ := perNode(t, c.stored...)
		f.Unknown = c.unknown
		seen := seenWith(f, c.seen)
		if err := f.SecretKeeper().Forget(t.Context(), seen); err != nil {
			t.Error(err)
		}
		var left []string
		for _, h := range f.All {
			var names []string
			for name := range h.Host.Secrets.(shelf).values {
				names = append(names, name)
			}
			slices.Sort(names)
			left = append(left, strings.Join(names, " "))
		}
		if got := strings.Join(left, ","); got != c.left {
			t.Errorf("%s: %q, not %q", what, got, c.left)
		}
	}
}

// TestRotateNode: the rotation of one node's value reaches only the host of the node.
func TestRotateNode(t *testing.T) {
	f, x := perNode(t, map[string]string{"key@a": "x"}, map[string]string{"key@b": "y"})
	seenWith(f, map[string]string{"a": "sv1", "b": "sv2"})
	if err := f.SecretKeeper().Rotate(t.Context(), x, "b", 2); err != nil {
		t.Fatal(err)
	}
	values := func(i int) map[string]string { return f.All[i].Host.Secrets.(shelf).values }
	if values(0)["key@a"] != "x" || len(values(0)) != 1 || len(values(1)["key@b"]) != 24 || len(values(2)) != 0 {
		t.Errorf("%v, %v, %v", values(0), values(1), values(2))
	}
}

// TestDueSecrets: certificates are renewed, and values in another format than declared are replaced. Without the
// certificate authority of the site, a certificate that must be renewed is only reported.
func TestDueSecrets(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	certificate := func(dirs host.Dirs, s *site.Site, age time.Duration) string {
		keys := secret.NewKeyring(s, dirs)
		keys.Now = func() time.Time { return now.Add(-age) }
		text, err := keys.Generate(&s.Secrets[0], "a")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const day = 24 * time.Hour
	for what, c := range map[string]struct {
		format    string
		age       time.Duration // of a certificate, or 0 for another value
		authority bool
		due, warn bool
	}{
		"new":                    {secretspec.X509, day, true, false, false},
		"old":                    {secretspec.X509, 300 * day, true, true, false},
		"new, no authority":      {secretspec.X509, day, false, false, false},
		"old, no authority":      {secretspec.X509, 300 * day, false, false, true},
		"no certificate":         {secretspec.X509, 0, true, true, false},
		"another format":         {secretspec.UUID, 0, true, true, false},
		"a certificate, not hex": {secretspec.Hex, day, true, true, false},
		"in its format":          {secretspec.Base64, 0, true, false, false},
	} {
		f, x := perNode(t)
		x.Format = c.format
		dirs, value := host.Dirs{State: t.TempDir()}, "YWJj"
		if c.age > 0 {
			of := *f.Site()
			of.Secrets = []site.Secret{{Name: "key", Format: secretspec.X509, Per: secretspec.PerNode}}
			value = certificate(dirs, &of, c.age)
		}
		if !c.authority {
			dirs = host.Dirs{State: t.TempDir()}
		}
		keys := secret.NewKeyring(f.Site(), dirs)
		keys.Now = func() time.Time { return now }
		for _, h := range f.All {
			h.keys = keys
		}
		f.All[0].Host.Secrets = shelf{values: map[string]string{"key@a": value}}
		due, err := f.SecretKeeper().Due(t.Context(), f.Site(), seenWith(f, map[string]string{"a": "sv1"}))
		if err != nil || (due["key@a"] != "") != c.due || len(f.Warnings()) > 0 != c.warn {
			t.Errorf("%s: %v, %v", what, due, err)
		}
	}
}
