package treesync

import (
	"testing"

	"orrery/internal/treesync/treesynctest"
)

// TestPolicies: each policy passes the right attributes, and Filter agrees with Passes.
func TestPolicies(t *testing.T) {
	for _, a := range treesynctest.Attributes {
		for _, c := range []struct {
			name   string
			policy Policy
			passes bool
		}{
			{"carried", ContentAttrs, a.Carried}, {"open", UnprivilegedAttrs, a.Open}, {"imported", ImportedAttrs, a.Imported},
			{"lasting", PersistentAttrs, a.Lasting},
		} {
			if c.policy.Includes(a.Name) != c.passes {
				t.Errorf("%q: %s lets it through: %v", a.Name, c.name, !c.passes)
			}
			if left := c.policy.Filter(map[string][]byte{a.Name: nil}); (left != nil) != c.passes {
				t.Errorf("%q: %s leaves %v", a.Name, c.name, left)
			}
		}
	}
}
