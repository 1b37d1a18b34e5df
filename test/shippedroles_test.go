package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"orrery/roles"
	"orrery/test/need"
)

// A shippedRole is how a client uses a role that ships with Orrery, which node one has.
type shippedRole struct {
	subnet string // third number of the site's addresses
	site   string // what the site file has in addition; FREE stands for an address of no node
	files  files
	use    func(s *site, address string) // once node one is up at that address
	again  func(s *site, address string) // after a restart, or nil: the same
}

var shippedRoles = map[string]shippedRole{
	"orrery/chrony": {subnet: "72", site: `role."orrery/chrony" = { servers = [], allow = ["all"], local_stratum = 5 }`,
		use: func(s *site, _ string) {
			s.run("exec", "one", "--", "chronyc", "-n", "tracking").want(0, `Stratum +: 5`)
		}},
	"orrery/dnsmasq": {subnet: "73", site: `role."orrery/dnsmasq".records = ["printer.lan,10.8.1.9"]`,
		use: func(s *site, address string) {
			for name, want := range map[string]string{"one": address, "one.lan." + s.name: address, "printer.lan": "10.8.1.9"} {
				wantLookup(s, address, name, want)
			}
		}},
	"orrery/haproxy": {subnet: "74", site: `role."orrery/haproxy" = { backends = "role=orrery/nginx", check_path = "/" }
node."web{1..2}" = { id = 11, roles = ["orrery/nginx"] }`,
		use: func(s *site, address string) { wantPage(s, "http://"+address+"/", "nginx") }},
	"orrery/keepalived": {subnet: "202", site: `node.two = { id = 11 }
service.portal = { address = "FREE", nodes = ["one", "two"] }`,
		use: func(s *site, _ string) {
			s.eventually(time.Minute, func() error {
				r := s.run("service", "ls")
				return ok(r.status == 0, "status %d: %s", r.status, r.out)
			})
			s.do("service", "move", "portal", "--to", "two")
			s.run("service", "ls").want(0, `portal +\S+ +two `)
		}},
	"orrery/nginx": {subnet: "76", site: `node.web = { id = 11, roles = ["page", "orrery/nginx"] }
role."orrery/nginx".root = "/srv/www"
group.front.nodes = ["one"]
group.front.role."orrery/nginx" = { port = 8080, forward_to = "name=web" }`,
		files: files{"roles/page/role.toml": "file = [{ path = \"/srv/www/index.html\", content = \"hello\\n\" }]\n"},
		use:   func(s *site, address string) { wantPage(s, "http://"+address+":8080/", "hello\n") }},
	"orrery/postgresql": {subnet: "79", site: `role."orrery/postgresql" = { users = ["anna"], databases = ["shop:anna"] }
node.app = { id = 11, roles = ["orders"] }
secret.postgresql_password.generate = 32`,
		// A role of the site may add settings before the server starts, and tables once it runs.
		files: files{"roles/orders/role.toml": `
needs.roles = ["orrery/postgresql"]
[[step]]
name = "memory"
when = "boot"
script = "echo \"work_mem = '7MB'\" > /etc/postgresql/conf.d/orders.conf"
[[step]]
name = "table"
when = "started"
user = "postgres"
script = "cd / && psql -q shop -c 'CREATE TABLE IF NOT EXISTS orders (id int)'"
`},
		use: func(s *site, _ string) {
			s.sh("one", asAnna+`psql -h 127.0.0.1 -U anna shop -c "CREATE TABLE x AS SELECT 42 AS y"`)
			wantOutput(s, "app", "cd /; runuser -u postgres -- psql -qAtc 'SHOW work_mem; SELECT count(*) FROM orders' shop", "7MB\n0")
			s.run("exec", "app", "--", "psql", "-w", "-h", "one", "-U", "anna", "shop").want(101, "no password supplied")
			wantOutput(s, "app", asAnna+`psql -qAt -h one -U anna shop -c "SELECT y FROM x"`, "42")
		},
		again: func(s *site, _ string) {
			wantOutput(s, "app", asAnna+`psql -qAt -h one -U anna shop -c "SELECT y FROM x"`, "42")
		}},
	"orrery/prometheus-node-exporter": {subnet: "80", site: `role."orrery/prometheus-node-exporter".disable = ["loadavg"]`,
		use: func(s *site, address string) {
			if text := page(s, "http://"+address+":9100/metrics"); !strings.Contains(text, "\nnode_memory_MemTotal_bytes ") ||
				strings.Contains(text, "\nnode_load1 ") {
				s.Errorf("the metrics are\n%s", text)
			}
		}},
	"orrery/redis": {subnet: "81", site: `secret.redis_password.generate = 32`,
		use: func(s *site, _ string) {
			s.sh("one", withPassword+"redis-cli set a 42")
			s.run("exec", "one", "--", "redis-cli", "get", "a").want(0, "NOAUTH")
		},
		again: func(s *site, _ string) { wantOutput(s, "one", withPassword+"redis-cli get a", "42") }},
}

const (
	asAnna       = `export PGPASSWORD="$(cat /etc/orrery/secrets/postgresql_password)"; `
	withPassword = `export REDISCLI_AUTH="$(cat /etc/orrery/secrets/redis_password)"; `
)

// TestShippedRoles: each role that ships with Orrery comes up on a node, does its work for a client, and does so
// again when the node has restarted, with the packages of two releases of Debian.
func TestShippedRoles(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	for _, name := range roles.Names() {
		t.Run(strings.TrimPrefix(name, roles.Namespace+"/"), func(t *testing.T) {
			r, ok := shippedRoles[name]
			if !ok {
				t.Fatalf("%s has no test", name)
			}
			t.Parallel()
			t.Run("bookworm", func(t *testing.T) { r.try(t, name, "bookworm", 0) })
			t.Run("trixie", func(t *testing.T) {
				served(t, "http://deb.debian.org/debian/dists/trixie/InRelease")
				r.try(t, name, "trixie", 128)
			})
		})
	}
}

// try uses the role on a node of a suite. The addresses of the site begin with a number.
func (r *shippedRole) try(t *testing.T, name, suite string, first int) {
	siteName := "it-" + suite + "-" + strings.NewReplacer(roles.Namespace+"/", "", "prometheus-node-", "").Replace(name)
	s := newSite(t, siteName, fmt.Sprintf(`
image.debian.suite = %q
network.lan = { subnet = "10.99.%[2]s.%[3]d/25", gateway = "10.99.%[2]s.%[4]d" }
node.one = { id = 10, roles = [%[5]q] }
%[6]s
`, suite, r.subnet, first, first+1, name, strings.ReplaceAll(r.site, "FREE", fmt.Sprintf("10.99.%s.%d", r.subnet, first+5))), r.files)
	s.run("check").want(0, "no mistakes")
	s.run("up").want(0, `one +10 +local +running +(was )?healthy`)
	address := fmt.Sprintf("10.99.%s.%d", r.subnet, first+10)
	r.use(s, address)
	s.settled()
	s.do("restart", "all")
	s.run("up", "--probe").want(0)
	if r.again != nil {
		r.again(s, address)
	} else {
		r.use(s, address)
	}
	s.settled()
}

// wantOutput wants a script to print a text in a node, whose services may still be starting.
func wantOutput(s *site, node, script, want string) {
	s.Helper()
	s.eventually(time.Minute, func() error {
		r := s.run("shell", node, "--", "/bin/sh", "-euc", script)
		if r.status != 0 || strings.TrimSpace(r.out) != want {
			return fmt.Errorf("status %d, %q and not %q: %s", r.status, r.out, want, r.errs)
		}
		return nil
	})
}

// page returns what a server answers. It may still be starting.
func page(s *site, url string) (text string) {
	s.Helper()
	client := &http.Client{Timeout: 5 * time.Second}
	s.eventually(time.Minute, func() error {
		answer, err := client.Get(url)
		if err != nil {
			return err
		}
		content, err := io.ReadAll(answer.Body)
		text = string(content)
		if answer.StatusCode != http.StatusOK {
			err = errors.New(answer.Status)
		}
		return errors.Join(err, answer.Body.Close())
	})
	return text
}

func wantPage(s *site, url, part string) {
	s.Helper()
	if text := page(s, url); !strings.Contains(text, part) {
		s.Errorf("%s is %q", url, text)
	}
}

// wantLookup looks a name up at a server.
func wantLookup(s *site, server, name, want string) {
	s.Helper()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server+":53")
	}}
	s.eventually(time.Minute, func() error {
		ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
		defer cancel()
		found, err := resolver.LookupHost(ctx, name+".") // not below the domains that this host searches
		if err == nil && (len(found) != 1 || found[0] != want) {
			err = fmt.Errorf("%s is at %v, not %s", name, found, want)
		}
		return err
	})
}
