package control_test

import (
	"strings"
	"testing"

	"orrery/internal/control/sites"
)

// TestUnusedRole: a plan names the roles that no node has.
func TestUnusedRole(t *testing.T) {
	d := newDesk(t)
	preview := func() {
		_, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
		d.must(err)
	}
	preview()
	if said := d.watch.text(); strings.Contains(said, "unused") {
		t.Errorf("told without an unused role: %s", said)
	}
	d.write("roles/spare/role.toml", "description = \"nobody has it\"\n")
	preview()
	if said := d.watch.text(); !strings.Contains(said, "1 unused role: spare") {
		t.Errorf("told: %s", said)
	}
}
