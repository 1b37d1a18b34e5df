package test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const nightSite = `
[network.lan]
subnet = "10.99.219.0/24"
gateway = "10.99.219.1"
[image.debian]
suite = "bookworm"
[defaults]
memory = "96MiB"
[node."n{1..2}"]
id = 11
roles = ["worker"]
[group.workers]
nodes = ["n*"]
`

// TestNight: while site.toml has a mistake, is missing or is another site's, all verbs that work with
// nodes that exist still do, with one line of warning. Verbs that need the declaration refuse. A
// node that is not declared any more, a failed node and the age of a health are shown.
func TestNight(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-night", nightSite, files{
		"roles/worker/role.toml": "[[file]]\npath = \"/etc/worker\"\ntemplate = \"worker\"\n[[health]]\ncommand = [\"test\", \"!\", \"-e\", \"/run/sick\"]\ntimeout = \"10s\"\nwithin = \"10s\"\n",
		"roles/worker/worker":    "{{ .Node.Name }}\n",
	})
	s.do("up")
	const declared = "site.name = \"it-night\"\n" + nightSite
	const warning = `(?m)^orrery: site\.toml:\d+: .*; using what this host has recorded\.$`
	s.edit("site.toml", "[defaults]", "[defaults")
	night := func(s *site, warning string) {
		t.Helper()
		quietly := func(status int, args []string, texts ...string) {
			t.Helper()
			r := s.run(args...).want(status, append(texts, warning)...)
			if n := strings.Count(r.errs, "using what this host has recorded"); n != 1 {
				t.Errorf("orrery %s warns %d times:\n%s", strings.Join(args, " "), n, r.errs)
			}
		}
		quietly(0, []string{"status"}, `n1 .*running .*healthy`, `n2 .*10\.99\.219\.12`)
		quietly(0, []string{"status", "--probe", "group=workers"}, `n1 .*healthy now`)
		quietly(0, []string{"logs", "n1", "-n", "5"}, "journal of node n1")
		quietly(0, []string{"exec", "role=worker", "--", "cat", "/etc/worker"}, "n1.*n1", "n2.*n2")
		quietly(0, []string{"shell", "n2", "--", "cat", "/etc/worker"}, "^n2")
		quietly(0, []string{"stop", "n2"})
		quietly(0, []string{"start", "n2"})
		quietly(0, []string{"restart", "n2"})
		to := filepath.Join(t.TempDir(), "worker")
		quietly(0, []string{"cp", "n1:/etc/worker", to})
		if text, err := os.ReadFile(to); err != nil || string(text) != "n1\n" {
			t.Errorf("%q, %v", text, err)
		}
		quietly(0, []string{"journal"}, "restart n2")
		quietly(0, []string{"graph"}, "<svg")
		s.wantForwarded("n1:22", warning)
	}
	night(s, warning)
	for _, verb := range [][]string{{"up"}, {"plan"}, {"check"}, {"stage", "--release", "700"},
		{"switch", "--release", "700"}, {"down"}, {"query"}, {"snapshot"}} {
		if r := s.run(verb...).want(3, `site\.toml:\d+`); strings.Contains(r.errs, "recorded") {
			t.Errorf("%s: %s", verb, r.errs)
		}
	}
	reply := s.run("--json", "status").want(0)
	var all struct {
		Result []struct {
			Node   string    `json:"node"`
			Health string    `json:"health"`
			At     time.Time `json:"health_at"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(reply.out), &all); err != nil || len(all.Result) != 2 || all.Result[0].At.IsZero() {
		t.Errorf("%s: %v", reply.out, err)
	}

	// by name, from anywhere, and without the directory
	byName := s.nowhere()
	byName.run("-C", "it-night", "status").want(0, warning)
	byName.run("-C", "it-nigth", "status").want(3, "neither a directory nor a site that is up", "did you mean it-night")
	away := s.dir + "-away"
	if err := os.Rename(s.dir, away); err != nil {
		t.Fatal(err)
	}
	byName.run("-C", "it-night", "exec", "all", "--", "true").want(0, "using what this host has recorded")
	byName.run("-C", "it-night", "plan").want(3)
	if err := os.Rename(away, s.dir); err != nil {
		t.Fatal(err)
	}

	s.write("site.toml", declared)
	s.settled()
	halfEdits(s)
	s.edit("site.toml", `"n{1..2}"`, `"n{1..1}"`)
	s.run("status").want(11, `n2 .*running`, "n2: is not in site.toml any more")
	s.write("site.toml", declared)
	s.do("exec", "n1", "--", "touch", "/run/sick")
	s.run("status", "--probe", "n1").want(11, "n1 .*unhealthy now")
	s.run("status", "n1").want(11, "n1 .*unhealthy")
	s.edit("roles/worker/role.toml", "[[health]]", "[[step]]\nname = \"bad\"\nwhen = \"boot\"\nscript = \"exit 3\"\n[[health]]")
	s.run("up", "n1").want(8)
	s.run("status", "n1").want(11, "n1 .*failed", `n1: configure failed at .* \(orrery logs n1 shows why\)`)
}

// halfEdits: a colleague is half way through an edit of any file of the site directory. Running nodes can
// still be worked with, up refuses and changes nothing, and when the edit is undone there is nothing to
// do. What editors leave beside a file is no change.
func halfEdits(s *site) {
	s.Helper()
	for _, c := range []struct{ file, text, message string }{
		{"site.toml", "", `site\.toml:1: the site has no name`},
		{"roles/worker/role.toml", "[[file]]\npath = \"/etc/wor", `roles/worker/role\.toml:2`},
		{"roles/worker/worker", "{{ .Node.Na", `roles/worker/worker:1`},
	} {
		path := filepath.Join(s.dir, c.file)
		before, err := os.ReadFile(path)
		if err != nil {
			s.Fatal(err)
		}
		s.write(c.file, c.text)
		s.run("up").want(3, c.message)
		s.run("exec", "n2", "--", "cat", "/etc/worker").want(0, "n2")
		s.run("status").want(0, "n1 .*running", "n2 .*running")
		s.write(c.file, string(before))
		s.settled()
	}
	for _, beside := range []string{"roles/worker/.worker.swp", "roles/worker/worker~", "roles/worker/4913",
		"site.toml~", ".#site.toml"} {
		s.write(beside, "{{ .Node.Na")
	}
	s.settled()
}

// wantForwarded wants a port of a node to be forwarded while the site is worked with as recorded.
func (s *site) wantForwarded(to, warning string) {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close()
	cmd, out, errs := s.command("forward", to, "--listen", at)
	wait, err := begin(cmd)
	if err != nil {
		s.Fatal(err)
	}
	s.eventually(func() error {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	_ = cmd.Process.Signal(os.Interrupt)
	_ = wait()
	result{s, cmd.Args, 0, out.String(), errs.String(), 0}.want(0, "http://"+at, warning)
}
