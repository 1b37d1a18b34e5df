package control_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/control/register"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// TestShippedRolesStay: nodes get a role that ships with Orrery. A release and the stored declaration keep the
// role with which they were made, whatever role the program that reads them later ships.
func TestShippedRolesStay(t *testing.T) {
	const name = "orrery/prometheus-node-exporter"
	d := newDesk(t)
	d.of("toykat").Answers = func(c net.Conn) { // of the exporter
		if _, err := c.Read(make([]byte, 4096)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		}
		_ = c.Close()
	}
	d.write("site.toml", toykat+"\n[role.\""+name+"\"]\nport = 9101\n")
	d.write("roles/web/role.toml", "needs.roles = [\""+name+"\"]\n")
	d.up()
	d.wantSaid("web1", "/etc/default/prometheus-node-exporter", "ARGS=\"--web.listen-address=:9101\"\n")
	d.stage(700)

	wantService := func(s *site.Site, service string) {
		t.Helper()
		if r, ok := s.Role(name); !ok || !slices.Equal(r.Services, []string{service}) {
			t.Errorf("the role is %+v", r)
		}
	}
	declared, err := d.Session.Register().LoadDeclaration(register.UpRecord{Site: "toykat"})
	d.must(err)
	wantService(declared, "prometheus-node-exporter.service")
	kept := filepath.Join(d.dirs.Release("toykat", 700), "site/.shipped_roles", name, "role.toml")
	role, err := os.ReadFile(kept)
	d.must(err)
	older := strings.Replace(string(role), `["prometheus-node-exporter.service"]`, `["older.service"]`, 1)
	d.must(os.WriteFile(kept, []byte(older), 0o600))
	released, err := d.Session.Register().LoadRelease(d.site(), 700)
	d.must(err)
	wantService(released, "older.service")
	wantService(d.site(), "prometheus-node-exporter.service")
	d.must(os.Remove(kept))
	_, err = d.Session.Register().LoadRelease(d.site(), 700)
	d.wantExit(err, problem.Mistake, `role "`+name+`" does not exist`)
}
