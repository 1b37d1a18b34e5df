package roles_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/params"
	"orrery/internal/site/render"
	"orrery/internal/site/sitefile"
	"orrery/roles"
)

// A setting is a value of a parameter, and what it adds to the files of the role on the node.
type setting struct{ value, want string }

// needed are the parameters without a default.
var needed = map[string]map[string]setting{
	"orrery/haproxy": {"backends": {`"name=web*"`, "server web1 10.9.8.11:80 check\n    server web2 10.9.8.12:80 check\n"}},
}

// beside are the nodes that a role needs in addition.
var beside = map[string]string{
	"orrery/log-client":         "[node.logs]\nid = 2\nroles = [\"orrery/log-server\"]\n",
	"orrery/postgresql-replica": "[node.db1]\nid = 2\nroles = [\"orrery/postgresql\"]\n",
	"orrery/slurmd":             "[node.head]\nid = 2\nroles = [\"orrery/slurmctld\"]\n",
}

// settings has every other parameter of every role. A parameter that only steps use has no text in a file.
var settings = map[string]map[string]setting{
	"orrery/chrony": {
		"servers":       {`["ntp1.lan", "10.0.0.1"]`, "pool ntp1.lan iburst\npool 10.0.0.1 iburst\n"},
		"allow":         {`["10.8.0.0/16"]`, "allow 10.8.0.0/16\n"},
		"local_stratum": {"8", "local stratum 8\n"},
	},
	"orrery/dnsmasq": {
		"upstream": {`["10.0.0.1", "fd00::1#5353"]`, "no-resolv\nserver=10.0.0.1\nserver=fd00::1#5353\n"},
		"domain":   {`"lan.example"`, "local=/lan.example/\n"},
		"records":  {`["printer.lan,10.8.1.9"]`, "host-record=printer.lan,10.8.1.9\n"},
		"cache":    {"7", "cache-size=7\n"},
	},
	"orrery/haproxy": {
		"backend_port": {"8080", "server web1 10.9.8.11:8080 check\n"},
		"port":         {"81", "bind :81\n"},
		"mode":         {`"tcp"`, "mode    tcp\n"},
		"balance":      {`"source"`, "balance source\n"},
		"check_path":   {`"/healthz"`, "http-check send meth GET uri /healthz\n"},
	},
	"orrery/log-client": {
		"servers": {`"name=web2"`, `target="10.9.8.12" port="514"`},
		"port":    {"601", ""}, // see TestLogs
		"queue":   {`"1MiB"`, ""},
	},
	"orrery/log-server": {
		"port":      {"601", `input(type="imtcp" port="601")`},
		"udp":       {"true", `input(type="imudp" port="514")`},
		"keep_days": {"7", "d /srv/logs - - - 7d\n"},
	},
	"orrery/mariadb": {
		"port":            {"3307", "port                    = 3307\n"},
		"listen":          {`"10.8.1.5"`, "bind-address            = 10.8.1.5\n"},
		"users":           {`["anna", "ben"]`, ""},
		"databases":       {`["shop:anna", "other"]`, ""},
		"max_connections": {"20", "max_connections         = 20\n"},
		"buffer_pool":     {`"32MiB"`, "innodb_buffer_pool_size = 33554432\n"},
	},
	"orrery/nginx": {
		"port":         {"8080", "listen 8080 default_server;"},
		"server_name":  {`"www.example.org"`, "server_name www.example.org;"},
		"root":         {`"/srv/www"`, "root /srv/www;"},
		"forward_to":   {`"name=web*"`, "    server 10.9.8.11:80;\n    server 10.9.8.12:80;\n"},
		"forward_port": {"8080", ""}, // see TestForward
		"max_body":     {`"8MiB"`, "client_max_body_size 8388608;"},
	},
	"orrery/openmpi": {
		"user":    {`"ada"`, "Match User ada\n"},
		"slots":   {"4", "one slots=4\n"},
		"network": {`"lan"`, "btl_tcp_if_include = 10.9.8.0/24\n"},
	},
	"orrery/postgresql": {
		"port":            {"5433", "port                    = 5433\n"},
		"listen":          {`["localhost", "10.8.1.5"]`, "listen_addresses        = 'localhost,10.8.1.5'\n"},
		"allow":           {`["10.8.0.0/16"]`, "host    all       all   10.8.0.0/16  scram-sha-256\n"},
		"users":           {`["anna", "ben"]`, ""},
		"databases":       {`["shop:anna", "other"]`, ""},
		"max_connections": {"20", "max_connections         = 20\n"},
		"shared_buffers":  {`"32MiB"`, "shared_buffers          = '33554432B'\n"},
		"primary":         {`"db1"`, ""},
	},
	"orrery/prometheus": {
		"port":          {"9091", "--web.listen-address=:9091 "},
		"nodes":         {`"name=one"`, ""}, // see TestScraped
		"exporter_port": {"9101", ""},
		"targets":       {`["10.8.1.9:9100", "nas.lan:9100"]`, `- targets: ["10.8.1.9:9100","nas.lan:9100"]`},
		"interval":      {`"1m"`, "scrape_interval: 1m\n"},
		"keep":          {`"1y"`, "--storage.tsdb.retention.time=1y"},
	},
	"orrery/prometheus-node-exporter": {
		"port":    {"9101", "--web.listen-address=:9101"},
		"disable": {`["wifi", "zfs"]`, " --no-collector.wifi --no-collector.zfs\""},
		"enable":  {`["systemd"]`, " --collector.systemd\""},
	},
	"orrery/rabbitmq": {
		"port":       {"5673", "listeners.tcp.default = 5673\n"},
		"users":      {`["anna", "ben"]`, ""},
		"vhosts":     {`["shop:anna"]`, ""},
		"max_memory": {`"1GiB"`, "vm_memory_high_watermark.absolute = 1073741824\n"},
	},
	"orrery/redis": {
		"port":        {"6380", "port 6380\n"},
		"listen":      {`["127.0.0.1", "10.8.1.5"]`, "bind 127.0.0.1 10.8.1.5\n"},
		"max_memory":  {`"1GiB"`, "maxmemory 1073741824\n"},
		"when_full":   {`"allkeys-lru"`, "maxmemory-policy allkeys-lru\n"},
		"append_only": {"false", "appendonly no\n"},
	},
	"orrery/tango": {
		"port": {"10001", "TANGO_HOST=one:10001\n"},
	},
	"orrery/slurmdbd": {
		"settings": {`["PurgeJobAfter=24months"]`, "\nPurgeJobAfter=24months\n"},
	},
	"orrery/slurm": {
		"partition": {`"long"`, "PartitionName=long Nodes=ALL"},
		"max_time":  {`"2-12:00:00"`, " MaxTime=2-12:00:00 "},
		"cpus":      {"4", ""}, // see TestSlurm
		"settings":  {`["SchedulerType=sched/builtin"]`, "\nSchedulerType=sched/builtin\n"},
	},
}

// load returns a site whose node one has a role with parameters, and the text of the role's files on the node.
func load(t *testing.T, name string, with map[string]setting) (*site.Site, string) {
	t.Helper()
	r, err := sitefile.ShippedRole(name)
	if err != nil {
		t.Fatal(err)
	}
	text := "[site]\nname = \"x\"\n[image.debian]\nsuite = \"bookworm\"\n[network.lan]\nsubnet = \"10.9.8.0/24\"\n" +
		"[node.\"web{1..2}\"]\nid = 11\n[node.one]\nid = 1\nroles = [\"" + name + "\"]\n" + beside[name]
	for _, x := range secretsOf(t, r) {
		text += fmt.Sprintf("[secret.%s]\ngenerate = 32\n", x)
	}
	text += fmt.Sprintf("[role.%q]\n", name)
	for _, param := range slices.Sorted(maps.Keys(with)) {
		text += param + " = " + with[param].value + "\n"
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sitefile.Load(dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var files strings.Builder
	view := render.New(s)
	for i := range r.Files {
		if f := &r.Files[i]; f.Rendered() {
			out, err := view.File(r, f, "one", func(_, _ string) (string, error) { return "hunter2", nil })
			if err != nil {
				t.Fatal(err)
			}
			files.Write(out.Content)
		}
	}
	return s, files.String()
}

// secretsOf returns the secrets of a role and of those that it needs.
func secretsOf(t *testing.T, r *site.Role) (names []string) {
	for _, x := range r.Secrets {
		names = append(names, x.Name)
	}
	for _, needed := range r.NeedsRoles {
		other, err := sitefile.ShippedRole(needed)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, secretsOf(t, other)...)
	}
	return names
}

// TestRoles: each role has what a user needs to know, and a site that only names it has no mistake.
func TestRoles(t *testing.T) {
	if len(roles.Names()) == 0 {
		t.Fatal("there are no roles")
	}
	for _, name := range roles.Names() {
		r, err := sitefile.ShippedRole(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Description == "" || len(r.Health) == 0 || len(r.Services) == 0 && len(r.NeedsRoles) == 0 {
			t.Errorf("%s has no description, health or service", name)
		}
		size := 0
		for _, content := range roles.Files(name) {
			size += len(content)
		}
		if size > 16<<10 {
			t.Errorf("%s has %d bytes, which every copy of a site directory contains", name, size)
		}
		_, defaults := load(t, name, needed[name])
		for _, p := range r.Params {
			with := maps.Clone(needed[name])
			if with == nil {
				with = map[string]setting{}
			}
			set, ok := with[p.Name]
			if !ok {
				set, ok = settings[name][p.Name]
			}
			if !ok || p.Doc == "" {
				t.Errorf("%s: parameter %s is not in this test, or has no doc", name, p.Name)
				continue
			}
			with[p.Name] = set
			s, text := load(t, name, with)
			if !strings.Contains(text, set.want) || needed[name][p.Name].value == "" && set.want != "" &&
				strings.Contains(defaults, set.want) {
				t.Errorf("%s: with %s = %s the files are\n%s\nand without\n%s", name, p.Name, set.value, text, defaults)
			}
			if value := params.Of(s, &s.Nodes[0], r)[p.Name]; value == nil {
				t.Errorf("%s: %s has no value", name, p.Name)
			}
		}
	}
}

// TestNames: every directory is a role, and other names find nothing.
func TestNames(t *testing.T) {
	for _, name := range roles.Names() {
		if len(roles.Files(name)["role.toml"]) == 0 || !roles.IsShipped(name) {
			t.Errorf("%s has no role.toml", name)
		}
	}
	for _, name := range []string{"", "orrery", "orrery/", "nginx", "orrery/.", "orrery/..", "orrery/nginx/role.toml",
		"orrery/../roles"} {
		if files := roles.Files(name); files != nil {
			t.Errorf("%q has files", name)
		}
	}
}

// TestForward: nginx forwards to the nodes of a selector, at their port.
func TestForward(t *testing.T) {
	_, text := load(t, "orrery/nginx", map[string]setting{"forward_to": {value: `"name=web*"`},
		"forward_port": {value: "8080"}})
	if !strings.Contains(text, "server 10.9.8.11:8080;\n    server 10.9.8.12:8080;\n") || strings.Contains(text, "root ") {
		t.Error(text)
	}
}

// TestNamesOfNodes: dnsmasq knows the nodes of the site by the names that they have on nodes themselves.
func TestNamesOfNodes(t *testing.T) {
	_, text := load(t, "orrery/dnsmasq", nil)
	for _, want := range []string{"host-record=web1,web1.x,10.9.8.11\n", "host-record=web1.lan.x,10.9.8.11\n", "local=/x/\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// TestLogs: a node sends its logs to the servers, at their port.
func TestLogs(t *testing.T) {
	_, text := load(t, "orrery/log-client", map[string]setting{"port": {value: "601"}, "queue": {value: `"1MiB"`}})
	if !strings.Contains(text, `target="10.9.8.2" port="601"`) || !strings.Contains(text, `queue.maxDiskSpace="1048576"`) {
		t.Error(text)
	}
}

// TestScraped: Prometheus asks the nodes that have the exporter, among those that are selected.
func TestScraped(t *testing.T) {
	beside["orrery/prometheus"] = "[node.\"m{1..2}\"]\nid = 21\nroles = [\"orrery/prometheus-node-exporter\"]\n"
	defer delete(beside, "orrery/prometheus")
	const first, second = `- targets: ["10.9.8.21:9101"]` + "\n        labels: {instance: \"m1\"}\n", "10.9.8.22"
	_, text := load(t, "orrery/prometheus", map[string]setting{"exporter_port": {value: "9101"}})
	if !strings.Contains(text, first) || !strings.Contains(text, second) || strings.Contains(text, "10.9.8.11") {
		t.Error(text)
	}
	_, text = load(t, "orrery/prometheus", map[string]setting{"exporter_port": {value: "9101"},
		"nodes": {value: `"name=m1"`}})
	if !strings.Contains(text, first) || strings.Contains(text, second) {
		t.Error(text)
	}
}

// TestSlurm: Slurm knows its controller and its nodes, with the processors of the site file.
func TestSlurm(t *testing.T) {
	beside["orrery/slurmctld"] = "cpus = 8\n[node.c1]\nid = 21\nroles = [\"orrery/slurmd\"]\ncpus = 2.5\n" +
		"[node.c2]\nid = 22\nroles = [\"orrery/slurmd\"]\ncpus = 0.5\n"
	defer delete(beside, "orrery/slurmctld")
	s, text := load(t, "orrery/slurmctld", nil)
	if strings.Contains(text, "ExecStartPre") {
		t.Errorf("the controller waits for an accounting that is not there: %s", text)
	}
	r, _ := s.Role("orrery/slurm")
	out, err := render.New(s).File(r, &r.Files[0], "one", nil)
	if want := "SlurmctldHost=one(10.9.8.1)\n"; err != nil || !strings.Contains(string(out.Content), want) ||
		!strings.Contains(string(out.Content), "NodeName=c1 NodeAddr=10.9.8.21 CPUs=2\nNodeName=c2 NodeAddr=10.9.8.22 CPUs=1\n") {
		t.Errorf("%v\n%s", err, out.Content)
	}
}

// TestAccounting: the controller waits for the node with the accounting, and Slurm reports jobs to it.
func TestAccounting(t *testing.T) {
	beside["orrery/slurmctld"] = "[node.acct]\nid = 21\nroles = [\"orrery/slurmdbd\"]\n[secret.mariadb_password]\ngenerate = 32\n"
	defer delete(beside, "orrery/slurmctld")
	s, text := load(t, "orrery/slurmctld", nil)
	if !strings.Contains(text, "</dev/tcp/10.9.8.21/6819;") {
		t.Error(text)
	}
	r, _ := s.Role("orrery/slurm")
	out, err := render.New(s).File(r, &r.Files[0], "one", nil)
	if want := "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=acct\n"; err != nil ||
		!strings.Contains(string(out.Content), want) {
		t.Errorf("%v\n%s", err, out.Content)
	}
}

// TestReplica: only the addresses of replicas may copy a primary.
func TestReplica(t *testing.T) {
	s, _ := load(t, "orrery/postgresql-replica", nil)
	r, _ := s.Role("orrery/postgresql")
	var text string
	for i := range r.Files {
		if f := &r.Files[i]; f.Rendered() {
			out, err := render.New(s).File(r, f, "db1", nil)
			if err != nil {
				t.Fatal(err)
			}
			text += string(out.Content)
		}
	}
	for _, want := range []string{"replication  orrery_replica  10.9.8.1/32  scram-sha-256\nhost    all       orrery_replica  all  reject\n",
		"wal_keep_size"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if _, text := load(t, "orrery/postgresql", nil); strings.Contains(text, "replica") || strings.Contains(text, "wal") {
		t.Errorf("without a replica the files are\n%s", text)
	}
}
