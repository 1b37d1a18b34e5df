package test

import (
	"regexp"
	"strings"
	"testing"
)

// TestRolling: an edit of a file of the layer is applied to a group's nodes one by one. A failed
// batch is restored with everything that its nodes had written, and later batches are not touched.
// After a fix of the site, the same command continues.
func TestRolling(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-rolling", `
[image.debian]
suite = "bookworm"
[node."cell{1..4}"]
id = 11
roles = ["cell"]
[group.cells]
nodes = ["cell*"]
batch = 1
`, files{
		"roles/cell/role.toml": `
[[file]]
path = "/etc/cell"
content = "good 1"
[[health]]
command = ["grep", "-q", "good", "/etc/cell"]
timeout = "10s"
within = "10s"
`,
	})
	nodes := []string{"cell1", "cell2", "cell3", "cell4"}
	if out := s.run("up").want(0); regexp.MustCompile(`batch [0-9]`).MatchString(out.errs) {
		t.Errorf("the first up goes by batches:\n%s", out.errs)
	}
	mark := func(node string) string { return s.sh(node, "cat /etc/cell /srv/mine") }
	before := map[string]string{}
	for _, node := range nodes {
		s.sh(node, "echo "+node+" >/srv/mine; systemctl show -p UserspaceTimestampMonotonic >>/srv/mine")
		before[node] = mark(node)
	}

	s.edit("roles/cell/role.toml", "good 1", "bad 2")
	s.run("plan").want(10, `recreate +nodes cell1, cell2, cell3, cell4: `, `Batches: 4, of up to 1 node; each begins when`)
	s.run("plan", "-v").want(10, `batch +batch 1 of 4: cell1`, `Batches, each started when`, `(?m)^ +4  cell4$`)
	s.run("up").want(8, `node cell1: check: FAILED`, `restored to their previous state: cell1`, `not done: .*batch 2 of 4`)
	for _, node := range nodes {
		if now := mark(node); now != before[node] {
			t.Errorf("node %s was\n%s\nis\n%s", node, before[node], now)
		}
	}
	for _, node := range nodes[1:] { // it was not restarted
		if now := s.sh(node, "systemctl show -p UserspaceTimestampMonotonic"); !strings.Contains(before[node], now) {
			t.Errorf("node %s was disturbed: %s", node, now)
		}
	}

	s.edit("roles/cell/role.toml", "bad 2", "good 3")
	out := s.run("up", "--batch", "50%").want(0).errs
	begins := regexp.MustCompile(`batch 2 of 2: batch: ok`).FindStringIndex(out)
	if begins == nil {
		t.Fatalf("no second batch began:\n%s", out)
	}
	for _, node := range nodes {
		checked, ended := strings.Index(out, "node "+node+": check: ok"), strings.Index(out, "node "+node+": kill: ok")
		if first := node <= "cell2"; checked < 0 || first != (checked < begins[0]) || first != (ended < begins[0]) {
			t.Errorf("node %s is not in its batch:\n%s", node, out)
		}
		if now := s.sh(node, "cat /etc/cell; ls /srv"); now != "good 3" {
			t.Errorf("node %s has %q", node, now)
		}
	}
	s.settled()
}
