package site

import "testing"

// TestSelfStarting: a service cannot be enabled in the layer if only the node has its unit.
func TestSelfStarting(t *testing.T) {
	unit := func(path, template string) File { return File{Path: path, Template: template} }
	for _, c := range []struct {
		role Role
		want bool
	}{
		{Role{Services: []string{"a.service"}, Files: []File{unit("/etc/systemd/system/a.service", "")}}, true},
		{Role{Services: []string{"a.service"}, Files: []File{unit("/etc/systemd/system/a.service", "unit")}}, false},
		{Role{Services: []string{"a"}, Files: []File{unit("/etc/systemd/system/a.service", "unit")}}, false},
		{Role{Services: []string{"a@1"}, Files: []File{unit("/etc/systemd/system/a@.service", "unit")}}, false},
		{Role{Services: []string{"a@1.timer"}, Files: []File{unit("/etc/systemd/system/a@.service", "unit")}}, true},
		{Role{Services: []string{"a"}, Files: []File{unit("/etc/a.conf", "conf")}}, true},
	} {
		if got := SelfStarting([]*Role{&c.role}); got != c.want {
			t.Errorf("%v with %v: %v", c.role.Services, c.role.Files, got)
		}
	}
}
