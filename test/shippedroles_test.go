package test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/roles"
	"orrery/test/need"
)

// A shippedRole is how a client uses a role that ships with Orrery.
type shippedRole struct {
	node  string // that has it
	id    int    // of the node
	roles string // of the node, if it has others than this one
	site  string // what the site file has in addition; FREE stands for an address of no node
	files files
	use   func(s *site, address string) // once the site is up, with the address of the node
	again func(s *site, address string) // once the node has started again, or nil: the same
	// deletes what use has stored; nil: a release and a backup need not have it
	lose func(s *site)
}

var shippedRoles = map[string]shippedRole{
	"orrery/chrony": {node: "time", id: 10,
		site: `role."orrery/chrony" = { servers = [], allow = ["all"], local_stratum = 5 }`,
		use: func(s *site, _ string) {
			s.run("exec", "time", "--", "chronyc", "-n", "tracking").want(0, `Stratum +: 5`)
		}},
	"orrery/dnsmasq": {node: "names", id: 11, site: `role."orrery/dnsmasq".records = ["printer.lan,10.8.1.9"]`,
		use: func(s *site, address string) {
			for name, want := range map[string]string{"names": address, "names.lan." + s.name: address,
				"printer.lan": "10.8.1.9"} {
				wantLookup(s, address, name, want)
			}
		}},
	"orrery/haproxy": {node: "balance", id: 12, site: `role."orrery/haproxy" = { backends = "name=web*", check_path = "/" }
node."web{1..2}" = { id = 13, roles = ["page", "orrery/nginx"] }`,
		use: func(s *site, address string) { wantPage(s, "http://"+address+"/", "hello\n") }},
	"orrery/keepalived": {node: "keep1", id: 32, site: `node.keep2 = { id = 33, roles = ["orrery/nginx"] }   # its health is that of the service
service.portal = { address = "FREE", nodes = ["keep1", "keep2"] }`,
		use: func(s *site, _ string) {
			s.eventually(func() error {
				r := s.run("service", "ls")
				return ok(r.status == 0, "status %d: %s", r.status, r.out)
			})
			s.do("service", "move", "portal", "--to", "keep2")
			s.run("service", "ls").want(0, `portal +\S+ +keep2 `)
		}},
	"orrery/log-client": {node: "sender", id: 20,
		use:   func(s *site, _ string) { wantLog(s, "sender", "said hello") },
		again: func(s *site, _ string) { wantLog(s, "sender", "said more") }},
	// Another machine sends too. A name that it makes up leads nowhere else.
	"orrery/log-server": {node: "logs", id: 21, use: func(s *site, address string) {
		s.eventually(func() error {
			conn, err := net.Dial("tcp", address+":514")
			if err != nil {
				return err
			}
			_, err = io.WriteString(conn, "<13>1 2026-01-02T03:04:05Z printer lpd - - - no paper\n"+
				"<13>1 2026-01-02T03:04:05Z ../away lpd - - - no paper\n")
			return errors.Join(err, conn.Close())
		})
		wantOutput(s, "logs", "grep -ohw 'no paper' /srv/logs/printer/*.log | sort -u", "no paper")
		wantOutput(s, "logs", "find /srv -name '*away*'", "/srv/logs/.._away")
	}},
	"orrery/mariadb": {node: "maria", id: 22,
		site: `role."orrery/mariadb" = { users = ["anna"], databases = ["shop:anna"] }
secret.mariadb_password.generate = 32`,
		use: func(s *site, address string) {
			s.sh("maria", annaSQL(address)+` -e "CREATE TABLE x SELECT 42 AS y"`)
			s.run("exec", "maria", "--", "mariadb", "--skip-ssl", "-h", address, "-u", "anna").want(101, "Access denied")
			s.run("exec", "maria", "--", "mariadb", "--skip-ssl", "-h", address, "-u", "root").want(101, "Access denied")
		},
		again: func(s *site, address string) {
			wantOutput(s, "maria", annaSQL(address)+` -BNe "SELECT y FROM x"`, "42")
		},
		lose: func(s *site) { s.sh("maria", `mariadb shop -e "DROP TABLE x"`) }},
	"orrery/munge": {node: "proof", id: 24, site: "secret.munge_key.generate = 64",
		use: func(s *site, _ string) {
			credential := s.sh("proof", "echo hello | munge")
			wantOutput(s, "head", "echo '"+credential+"' | unmunge | tail -1", "hello")
		}},
	"orrery/nginx": {node: "front", id: 15, site: `role."orrery/nginx".root = "/srv/www"
group.fronts.nodes = ["front"]
group.fronts.role."orrery/nginx" = { port = 8080, forward_to = "name=web*" }`,
		files: files{"roles/page/role.toml": "file = [{ path = \"/srv/www/index.html\", content = \"hello\\n\" }]\n"},
		use:   func(s *site, address string) { wantPage(s, "http://"+address+":8080/", "hello\n") }},
	"orrery/openmpi": {node: "rank1", id: 25, site: `node.rank2 = { id = 26, roles = ["orrery/openmpi"] }`,
		use: func(s *site, _ string) {
			wantOutput(s, "rank1", "cd /; runuser -u mpi -- timeout -k 10 120 mpirun -n 2 hostname | sort", "rank1\nrank2")
		}},
	"orrery/postgresql": {node: "db", id: 16, roles: `"orders"`,
		site: `role."orrery/postgresql" = { users = ["anna"], databases = ["shop:anna"] }
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
		use: func(s *site, address string) {
			s.sh("db", asAnna+`psql -h 127.0.0.1 -U anna shop -c "CREATE TABLE x AS SELECT 42 AS y"`)
			wantOutput(s, "db", "cd /; runuser -u postgres -- psql -qAtc 'SHOW work_mem; SELECT count(*) FROM orders' shop",
				"7MB\n0")
			s.run("exec", "db", "--", "psql", "-w", "-h", address, "-U", "anna", "shop").want(101, "no password supplied")
		},
		again: func(s *site, address string) {
			wantOutput(s, "db", asAnna+`psql -qAt -h `+address+` -U anna shop -c "SELECT y FROM x"`, "42")
		},
		lose: func(s *site) { s.sh("db", asAnna+`psql -h 127.0.0.1 -U anna shop -c "DROP TABLE x"`) }},
	"orrery/postgresql-replica": {node: "copy", id: 30,
		use: func(s *site, address string) {
			wantOutput(s, "db", asAnna+`psql -qAt -h `+address+` -U anna shop -c "SELECT y, pg_is_in_recovery() FROM x"`, "42|t")
		},
		lose: func(*site) {}}, // its primary does
	"orrery/prometheus": {node: "monitor", id: 19, site: `role."orrery/prometheus".interval = "2s"`,
		use: func(s *site, address string) {
			wantPage(s, "http://"+address+":9090/api/v1/query?query=up%7Bjob=%22nodes%22%7D==1", `"instance":"metrics"`)
		}},
	"orrery/prometheus-node-exporter": {node: "metrics", id: 17,
		site: `role."orrery/prometheus-node-exporter".disable = ["loadavg"]`,
		use: func(s *site, address string) {
			if text := page(s, "http://"+address+":9100/metrics"); !strings.Contains(text, "\nnode_memory_MemTotal_bytes ") ||
				strings.Contains(text, "\nnode_load1 ") {
				s.Errorf("the metrics are\n%s", text)
			}
		}},
	"orrery/rabbitmq": {node: "queue", id: 23, roles: `"amqp"`,
		site: `role."orrery/rabbitmq" = { users = ["anna"], vhosts = ["shop:anna"] }
secret.rabbitmq_password.generate = 32`,
		files: files{"roles/amqp/role.toml": "apt = [\"amqp-tools\"]\nneeds.roles = [\"orrery/rabbitmq\"]\n"},
		use: func(s *site, address string) {
			s.sh("queue", "amqp-declare-queue "+annaAMQP(address, "/shop")+" -q jobs -d")
			for range 3 { // again takes one
				s.sh("queue", "amqp-publish "+annaAMQP(address, "/shop")+" -r jobs -p -b hello")
			}
			s.sh("queue", "amqp-declare-queue "+annaAMQP(address, "")+" -q others")
			for _, wrong := range []string{"anna:x", "guest:guest"} {
				s.run("exec", "queue", "--", "amqp-get", "--url=amqp://"+wrong+"@"+address, "-q", "jobs").want(101, "refused")
			}
		},
		again: func(s *site, address string) {
			wantOutput(s, "queue", "amqp-get "+annaAMQP(address, "/shop")+" -q jobs", "hello")
		},
		lose: func(s *site) { s.sh("queue", "amqp-delete-queue "+annaAMQP("localhost", "/shop")+" -q jobs") }},
	"orrery/slurm": {node: "login", id: 27,
		use: func(s *site, _ string) { wantOutput(s, "login", "srun --immediate=20 hostname", "worker") }},
	"orrery/slurmctld": {node: "head", id: 28,
		use: func(s *site, _ string) { wantOutput(s, "head", "sinfo -h -o '%R %D'", "main 1") }},
	"orrery/slurmd": {node: "worker", id: 29,
		use: func(s *site, _ string) { wantOutput(s, "head", "srun --immediate=20 hostname", "worker") }},
	"orrery/slurmdbd": {node: "acct", id: 34,
		use: func(s *site, _ string) {
			wantOutput(s, "head", "srun --immediate=20 --job-name=billed true; sacct -n -X -P --name=billed -o jobname,state | sort -u", "billed|COMPLETED")
		}},
	"orrery/tango": {node: "tango", id: 31,
		use: func(s *site, address string) {
			s.sh("tango", "TANGO_HOST="+address+":10000 tango_admin --add-server TangoTest/a TangoTest sys/tg_test/1")
		},
		again: func(s *site, address string) {
			wantOutput(s, "tango", "TANGO_HOST="+address+":10000 tango_admin --check-device sys/tg_test/1 && echo there", "there")
		}},
	"orrery/redis": {node: "cache", id: 18, site: `secret.redis_password.generate = 32`,
		use: func(s *site, _ string) {
			s.sh("cache", withPassword+"redis-cli set a 42")
			s.run("exec", "cache", "--", "redis-cli", "get", "a").want(0, "NOAUTH")
		},
		again: func(s *site, _ string) { wantOutput(s, "cache", withPassword+"redis-cli get a", "42") },
		lose:  func(s *site) { s.sh("cache", withPassword+"redis-cli del a") }},
}

const (
	asAnna       = `export PGPASSWORD="$(cat /etc/orrery/secrets/postgresql_password)"; `
	withPassword = `export REDISCLI_AUTH="$(cat /etc/orrery/secrets/redis_password)"; `
)

// annaSQL is a client of MariaDB, up to its further options.
func annaSQL(address string) string {
	return `MYSQL_PWD="$(cat /etc/orrery/secrets/mariadb_password)" mariadb -h ` + address + ` -u anna shop`
}

// annaAMQP are the options of a client of RabbitMQ.
func annaAMQP(address, vhost string) string {
	return `--url="amqp://anna:$(cat /etc/orrery/secrets/rabbitmq_password)@` + address + vhost + `"`
}

// TestShippedRoles: the roles that ship with Orrery come up on the nodes of one site and do their work for a
// client. With one release of Debian, they do so again when all nodes have restarted. With another, those with
// data take them along to a release, and have them back from a backup. Each start of their servers costs
// processor time, so neither release does all of it.
func TestShippedRoles(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	for _, name := range roles.Names() {
		if _, ok := shippedRoles[name]; !ok {
			t.Errorf("%s has no test", name)
		}
	}
	t.Run("bookworm", func(t *testing.T) {
		t.Parallel()
		s := newShipped(t, "bookworm", 0)
		s.each("use", func(s *site, r *shippedRole, address string) { r.use(s, address) })
		s.do("restart", "not role=orrery/rabbitmq") // whose start costs as much as that of all others
		s.run("up", "--probe").want(0)
		s.each("restarted", started)
		s.settled()
	})
	t.Run("trixie", func(t *testing.T) {
		t.Parallel()
		served(t, "http://deb.debian.org/debian/dists/trixie/InRelease")
		s := newShipped(t, "trixie", 128)
		s.each("use", func(s *site, r *shippedRole, address string) { r.use(s, address) })
		s.settled()
		var nodes []string
		for _, name := range stores() {
			nodes = append(nodes, shippedRoles[name].node)
		}
		of := strings.Join(nodes, ",")
		s.edit("site.toml", "image.", "release.1 = {}\nimage.")
		s.do("stage", of, "--release", "1")
		s.do("switch", of, "--release", "1")
		s.some("switched", stores(), started)
		backups := t.TempDir()
		s.do("backup", of, backups)
		s.some("lose", stores(), func(s *site, r *shippedRole, _ string) { r.lose(s) })
		for _, node := range nodes {
			s.run("restore", backups, "--node", node, "--replace", "--yes-replace", s.name).want(0, "1 node as in node "+node)
		}
		s.some("restored", stores(), started)
		s.settled()
	})
}

// A shippedSite is a site with nodes for all roles that ship with Orrery.
type shippedSite struct {
	*site
	subnet int // the last number of the address of its network
}

// newShipped brings up such a site, whose nodes are of a suite.
func newShipped(t *testing.T, suite string, subnet int) *shippedSite {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "image.debian.suite = %q\nnetwork.lan = { subnet = \"10.99.72.%d/25\", gateway = \"10.99.72.%d\" }\n",
		suite, subnet, subnet+1)
	all := files{}
	for _, name := range roles.Names() {
		r := shippedRoles[name]
		fmt.Fprintf(&b, "node.%s = { id = %d, roles = [%s] }\n%s\n", r.node, r.id, cmp.Or(r.roles, `"`+name+`"`), r.site)
		maps.Copy(all, r.files)
	}
	text := strings.ReplaceAll(b.String(), "FREE", fmt.Sprintf("10.99.72.%d", subnet+99))
	s := &shippedSite{newSite(t, "it-roles-"+suite, text, all), subnet}
	s.run("check").want(0, "no mistakes")
	s.do("up")
	return s
}

// each calls a function for every role, as a subtest.
func (s *shippedSite) each(what string, do func(s *site, r *shippedRole, address string)) {
	s.some(what, roles.Names(), do)
}

// stores returns the roles with data.
func stores() []string {
	return slices.DeleteFunc(roles.Names(), func(name string) bool { return shippedRoles[name].lose == nil })
}

// some is each for some roles.
func (s *shippedSite) some(what string, names []string, do func(s *site, r *shippedRole, address string)) {
	for _, name := range names {
		r := shippedRoles[name]
		s.Run(what+" "+strings.TrimPrefix(name, roles.Namespace+"/"), func(t *testing.T) {
			do(s.of(t), &r, fmt.Sprintf("10.99.72.%d", s.subnet+r.id))
		})
	}
}

// started uses a role whose node has started again.
func started(s *site, r *shippedRole, address string) {
	if r.again != nil {
		r.again(s, address)
	} else {
		r.use(s, address)
	}
}

// wantOutput wants a script to print a text in a node, whose services may still be starting.
func wantOutput(s *site, node, script, want string) {
	s.Helper()
	s.eventually(func() error {
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
	s.eventually(func() error {
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

// wantPage wants a server to answer with a text in time.
func wantPage(s *site, url, part string) {
	s.Helper()
	s.eventually(func() error {
		if text := page(s, url); !strings.Contains(text, part) {
			return fmt.Errorf("%s is %q", url, text)
		}
		return nil
	})
}

// wantLog logs a text on a node, and wants it to be among the central logs.
func wantLog(s *site, node, text string) {
	s.Helper()
	s.sh(node, "logger '"+text+"'")
	wantOutput(s, "logs", fmt.Sprintf("grep -ohw '%s' /srv/logs/%s/*.log | sort -u", text, node), text)
}

// wantLookup looks a name up at a server.
func wantLookup(s *site, server, name, want string) {
	s.Helper()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server+":53")
	}}
	s.eventually(func() error {
		ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
		defer cancel()
		found, err := resolver.LookupHost(ctx, name+".") // not below the domains that this host searches
		if err == nil && (len(found) != 1 || found[0] != want) {
			err = fmt.Errorf("%s is at %v, not %s", name, found, want)
		}
		return err
	})
}
