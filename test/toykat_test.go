package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	modelled "orrery/internal/site"
)

const portal = "http://10.99.67.101"

func TestToykat(t *testing.T) {
	t.Parallel()
	s := newExample(t, "toykat", "it-toykat", "10.8.67.", "10.99.67.", "10.8.68.", "10.99.68.")
	s.run("up").want(0, `portal .*healthy`)
	s.run("plan", "--probe").want(0, "nothing to do")
	nodes := []string{"portal", "db", "receptor1", "receptor2", "receptor3", "receptor4"}
	ok := t.Run("Portal", func(t *testing.T) { toykatPortal(s.of(t)) }) &&
		t.Run("Exec", func(t *testing.T) {
			r := s.of(t).run("exec", "role=receptor", "--", "systemctl", "is-system-running").want(0, "4 of 4 nodes succeeded")
			if n := strings.Count(r.out, "| running\n"); n != 4 {
				t.Errorf("%d of 4 receptors run\n%s", n, r.out)
			}
		}) &&
		t.Run("Template", func(t *testing.T) { toykatTemplate(s.of(t), nodes) }) &&
		t.Run("Identity", func(t *testing.T) { toykatIdentity(s.of(t)) }) &&
		t.Run("Releases", func(t *testing.T) { toykatReleases(s.of(t), nodes) }) &&
		t.Run("Volume", func(t *testing.T) { toykatVolume(s.of(t)) })
	if !ok {
		t.Log("the parts after a failed one were not tried")
	}
}

// toykatPortal checks the system as its users see it: over the network, from the host.
func toykatPortal(s *site) {
	page, err := http.Get(portal + "/")
	if err != nil {
		s.Fatal(err)
	}
	page.Body.Close()
	if page.StatusCode != http.StatusOK {
		s.Errorf("the page: %s", page.Status)
	}
	s.eventually(func() error {
		answer, err := http.Get(portal + "/api/state")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		var state struct {
			Receptors []struct {
				Name      string
				Connected bool
				Sensors   map[string]any
			}
		}
		if err := json.NewDecoder(answer.Body).Decode(&state); err != nil {
			return err
		}
		var names []string
		for _, r := range state.Receptors {
			if !r.Connected || len(r.Sensors) < 5 {
				return fmt.Errorf("%s: connected %t, %d sensors", r.Name, r.Connected, len(r.Sensors))
			}
			names = append(names, r.Name)
		}
		if want := []string{"receptor1", "receptor2", "receptor3", "receptor4"}; !slices.Equal(names, want) {
			return fmt.Errorf("the receptors are %v", names)
		}
		return nil
	})
}

// toykatTemplate: editing a template changes the nodes of its role, and no others.
func toykatTemplate(s *site, nodes []string) {
	before := map[string]string{}
	for _, n := range nodes {
		before[n] = s.init(n)
	}
	started := func(node, unit string) string {
		return s.on(node, "systemctl", "show", "-P", "ActiveEnterTimestampMonotonic", unit)
	}
	portalStarted, receptorStarted := started("portal", "portal.service"), started("receptor3", "receptor.service")
	s.edit("roles/receptor/receptor.json.tmpl", `"latitude":`, `"edited": true, "latitude":`)
	s.wantPlan("configure receptor1", "check receptor1", "configure receptor2", "check receptor2",
		"configure receptor3", "check receptor3", "configure receptor4", "check receptor4")
	s.run("plan").want(10, `configure +nodes receptor1, receptor2, .*: receptor: file /etc/receptor.json changed; services restart`)
	s.do("up")
	for _, n := range nodes {
		if after := s.init(n); after != before[n] {
			s.Errorf("init of %s was %s and is %s", n, before[n], after)
		}
	}
	if now := started("portal", "portal.service"); now != portalStarted {
		s.Error("the portal was started anew")
	}
	if now := started("receptor3", "receptor.service"); now == receptorStarted {
		s.Error("the receptors were not started anew")
	}
	s.sh("receptor3", "grep -q edited /etc/receptor.json")
	s.settled()
	// A variable of a single node affects only that node.
	s.edit("site.toml", "receptor1 = [25.095", "receptor1 = [26.095")
	s.wantPlan("names local", "configure receptor1", "check receptor1") // the inventory has the site's variables
	s.do("up")
	s.settled()
}

// toykatIdentity: a node that is destroyed and recreated is the same to its peers.
func toykatIdentity(s *site) {
	identity := func() string {
		return s.sh("receptor2", "cat /sys/class/net/*/address /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub; ip -4 -o addr | grep -o 'inet [0-9./]*'")
	}
	before := identity()
	if want := modelled.MAC(s.name, "receptor2", "cam"); !strings.Contains(before, want) {
		s.Errorf("no interface has the address %s:\n%s", want, before)
	}
	s.do("down", "receptor2")
	s.run("status").want(11, "receptor2 .*absent")
	s.do("up")
	if after := identity(); after != before {
		s.Errorf("receptor2 was\n%s\nand is\n%s", before, after)
	}
	s.settled()
}

// toykatReleases: once a release is staged, the whole telescope switches to it and back repeatedly,
// without staging again. Its nodes are proven in quarantine if all nodes that they need are there,
// and otherwise when they are live. No sample is lost.
func toykatReleases(s *site, nodes []string) {
	forward := []string{"switch", "system", "--release", "701"}
	s.do("stage", "system", "--release", "701")
	before := s.samples()
	for turn, verb := range [][]string{forward, {"rollback"}, forward, {"rollback"}, forward} {
		s.run(verb...).want(0, "6 nodes at release")
		s.wantLive(701*((turn+1)%2), nodes...)
		toykatPortal(s)
		after := s.samples()
		if after < before {
			s.Errorf("after %d turns %d of %d rows are left", turn+1, after, before)
		}
		before = after
		s.run("status", "--probe").want(0)
	}
	s.edit("site.toml", "receptor2 = [90.284", "receptor2 = [91.284")
	s.run("plan").want(10, "release 701 is live: receptor2: ") // names change, and no node
}

// samples returns how many rows there were in the database a moment ago.
func (s *site) samples() int {
	s.Helper()
	out := s.on("db", "runuser", "-u", "postgres", "--", "psql", "-qAt", "-d", "toykat", "-c",
		"SELECT count(*) FROM samples WHERE time < now() - interval '1 s'")
	n, err := strconv.Atoi(out)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// toykatVolume: data outlives its node, until the user removes it. The live release stays live.
func toykatVolume(s *site) {
	before := s.samples()
	if before == 0 {
		s.Fatal("there are no rows")
	}
	s.run("down").want(0, "release 701 stays live")
	s.run("up").want(0, "release 701 is started again", `portal .*701 .*healthy`)
	if after := s.samples(); after < before {
		s.Errorf("of %d rows %d are left", before, after)
	}
	s.run("down", "--volumes").want(9, "not confirmed; nothing was done")
	s.run("status").want(0)
	s.run("down", "--volumes", "--yes-volumes", "another").want(9)
	s.run("down", "--volumes", "--yes-volumes", s.name).want(0, "taken down")
	if left := glob(s.dirs.Volumes(s.name) + "/*/*"); len(left) > 0 {
		s.Errorf("volumes are left: %v", left)
	}
	if _, err := os.Stat(s.dirs.Keys(s.name)); err != nil {
		s.Errorf("the host keys are gone: %v", err)
	}
}
