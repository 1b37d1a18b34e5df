package twin_test

import (
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// TestSharedSecret: on a collapsed node, a secret that two roles declare for different users is
// readable for everyone. A secret with equal declarations is not.
func TestSharedSecret(t *testing.T) {
	role := func(name, user string) site.Role {
		return site.Role{Name: name, Secrets: []site.SecretUse{{Name: "password", Owner: user, Mode: 0o400},
			{Name: "key", Owner: "root:root", Mode: 0o400}}}
	}
	s := &site.Site{
		Name: "karoo", Roles: []site.Role{role("db", "postgres:postgres"), role("portal", "portal:portal")},
		Nodes: []site.Node{{Name: "db", ID: 101, Roles: []string{"db"}},
			{Name: "portal", ID: 102, Roles: []string{"portal"}}},
	}
	made, err := twin.New(s, twin.Options{Name: "toy", Collapse: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range made.Roles {
		password, key := r.Secrets[0], r.Secrets[1]
		if password.Owner != "root:root" || password.Mode != 0o444 || key.Mode != 0o400 {
			t.Errorf("role %s: %+v", r.Name, r.Secrets)
		}
	}
	if s.Roles[0].Secrets[0].Mode != 0o400 {
		t.Error("the original is another")
	}
}

// TestMachines: a container and a virtual machine collapse into one of the two, with limits for
// that kind. A virtual machine keeps enough memory to boot.
func TestMachines(t *testing.T) {
	swap := int64(0)
	vm := site.Node{Name: "vm", ID: 1, Engine: site.KVM, Limits: site.Limits{Cpus: 1, Memory: 512 << 20}}
	box := site.Node{Name: "box", ID: 2, Engine: site.LXC, Privileged: true,
		Limits: site.Limits{Cpus: 1, Memory: 1 << 30, Swap: &swap, Pids: 100}}
	open := site.Node{Name: "open", ID: 3, Engine: site.LXC, Limits: site.Limits{Cpus: 1, Pids: 100}}
	for _, c := range []struct {
		name       string
		nodes      []site.Node
		o          twin.Options
		limits     site.Limits
		privileged bool
	}{
		{"into a machine", []site.Node{vm, box}, twin.Options{Collapse: true}, site.Limits{Cpus: 2, Memory: 3 << 29}, false},
		{"one without a limit", []site.Node{vm, open}, twin.Options{Collapse: true}, site.Limits{Cpus: 2, Memory: 1 << 30},
			false},
		{"into a container", []site.Node{box, vm}, twin.Options{Collapse: true},
			site.Limits{Cpus: 2, Memory: 3 << 29, Pids: 100 + site.DefaultPids}, true},
		{"a small machine", []site.Node{vm}, twin.Options{Memory: 0.01}, site.Limits{Cpus: 1, Memory: site.MinVMMemory},
			false},
	} {
		c.o.Name = "toy"
		made, err := twin.New(&site.Site{Name: "karoo", Nodes: c.nodes}, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if n := made.Nodes[0]; n.Limits != c.limits || n.Privileged != c.privileged || n.Engine != c.nodes[0].Engine {
			t.Errorf("%s: %+v", c.name, n)
		}
	}
}
