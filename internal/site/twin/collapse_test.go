package twin_test

import (
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// TestSharedSecret: a secret that two roles want for different users is for everybody on the one node; one that they want alike is not.
func TestSharedSecret(t *testing.T) {
	role := func(name, user string) site.Role {
		return site.Role{Name: name, Secrets: []site.SecretUse{{Name: "password", Owner: user, Mode: 0o400}, {Name: "key", Owner: "root:root", Mode: 0o400}}}
	}
	s := &site.Site{
		Name: "karoo", Roles: []site.Role{role("db", "postgres:postgres"), role("portal", "portal:portal")},
		Nodes: []site.Node{{Name: "db", ID: 101, Roles: []string{"db"}}, {Name: "portal", ID: 102, Roles: []string{"portal"}}},
	}
	made, err := twin.Of(s, twin.Options{Name: "toy", Collapse: true})
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
