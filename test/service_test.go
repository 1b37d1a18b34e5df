package test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/host/whohas"
	"orrery/internal/observe/drill"
	model "orrery/internal/site"
)

const servingSite = `
network.lan = { subnet = "10.99.201.0/24", gateway = "10.99.201.1" }
image.debian.suite = "bookworm"
node."web{1..2}" = { id = 11, roles = ["web"] }
node.client.id = 21
service.portal = { address = "10.99.201.5", nodes = ["web{1,2}"], advertise = "1s" }
`

const serviceAddress = "10.99.201.5"

// TestService: the address of a service has one holder, whatever befalls it. Who has it is asked on the wire:
// a client whose neighbour table is full sees one holder even if there are two.
func TestService(t *testing.T) {
	t.Parallel()
	s := &serving{newSite(t, "it-service", servingSite, files{
		"roles/web/role.toml": "[[health]]\ncommand = [\"/bin/sh\", \"-c\", \"! test -e /run/sick\"]\n"})}
	s.do("up")
	s.settled()
	s.holder()
	got := strings.Fields(s.on("client", "getent", "ahostsv4", "portal.it-service"))
	if len(got) == 0 || got[0] != serviceAddress {
		t.Errorf("portal.it-service is at %q", got)
	}

	for _, fault := range drill.Faults {
		before := s.holder()
		var reply struct{ Result drill.Result }
		if err := json.Unmarshal([]byte(s.do("service", "test", "portal", "--fault", fault, "--json")), &reply); err != nil {
			t.Fatal(err)
		}
		r := reply.Result
		if r.Holder != before || r.Next == "" || r.Next == before || r.Client != "client" || len(r.Answers) != 1 {
			t.Errorf("%s: %+v", fault, r)
		}
		s.holder()
		s.run("status").want(0, "service portal: last drill .*: "+fault+" of "+before)
	}
	s.settled()

	// Whenever a drill is killed, the next run takes the link of the holder up again.
	s.killed(2500*time.Millisecond, "service", "test", "portal", "--fault", "cut")
	s.do("up")
	s.sh("client", "ping -c 1 -w 60 web1 && ping -c 1 -w 60 web2")

	// A killed keepalived leaves its address, and a frozen one keeps it: when it goes on, there are two holders.
	before := s.holder()
	s.sh(before, "kill -9 $(pidof keepalived)")
	if s.holder() == before {
		t.Errorf("%s still has the address after its keepalived was killed", before)
	}
	before = s.holder()
	flaps := s.list().Flaps
	s.sh(before, "kill -STOP $(pidof keepalived)")
	after := s.otherThan(before) // although the kernel of the former holder would answer
	s.sh(before, "ip -o address show to "+serviceAddress+" | grep -q .")
	s.sh(before, "kill -CONT $(pidof keepalived)")
	if got := s.holder(); got != after && got != before {
		t.Errorf("after it went on, %s has the address", got)
	}
	s.eventually(func() error { return ok(s.list().Flaps > flaps, "%v", s.list()) })

	// The health of the node's roles decides, and a node that is well again does not take the address back.
	before = s.holder()
	s.sh(before, "touch /run/sick")
	after = s.otherThan(before)
	s.sh(before, "rm /run/sick")
	s.eventually(func() error { return ok(s.list().Nodes[before] == "BACKUP", "%v", s.list()) })
	if got := s.holder(); got != after {
		t.Errorf("%s has the address, although %s had taken it over", got, after)
	}
	s.do("service", "move", "portal", "--to", before)
	if got := s.holder(); got != before {
		t.Errorf("the address was moved to %s, and %s has it", before, got)
	}

	// A node that is not in the service cannot take the address, and none can before it holds it.
	for _, node := range []string{"client", s.other(before)} {
		s.sh(node, "ip address add "+serviceAddress+"/32 dev eth0")
		if got := s.holder(); got != before {
			t.Errorf("%s took the address: %s has it", node, got)
		}
		s.sh(node, "ip address delete "+serviceAddress+"/32 dev eth0")
	}

	s.edit("site.toml", `service.portal = { address = "10.99.201.5", nodes = ["web{1,2}"], advertise = "1s" }`, "")
	s.do("up")
	if got := s.answering(); len(got) > 0 {
		t.Errorf("without the service, %v answer", got)
	}
	s.sh("web1", "ip address add "+serviceAddress+"/32 dev eth0")
	if got := s.answering(); len(got) > 0 {
		t.Errorf("a node of a service that is gone took its address: %v answer", got)
	}
}

// A serving is the site with the service.
type serving struct{ *site }

// answering returns the nodes that answer for the address within a second.
func (s *serving) answering() (nodes []string) {
	s.Helper()
	macs, err := whohas.Ask(s.Context(), whohas.Client{Space: "/proc/self/ns/net", Link: model.BridgeName(s.name, "lan"),
		Address: netip.MustParseAddr("10.99.201.1")}, netip.MustParseAddr(serviceAddress), time.Second)
	if err != nil {
		s.Fatal(err)
	}
	for _, mac := range macs {
		name := mac
		for _, node := range []string{"web1", "web2", "client"} {
			if model.MAC(s.name, node, "lan") == mac {
				name = node
			}
		}
		nodes = append(nodes, name)
	}
	return nodes
}

// holder waits until exactly one node answers for the address, and the next second the same one, and returns it.
func (s *serving) holder() (node string) {
	s.Helper()
	s.eventually(func() error {
		one := s.answering()
		two := s.answering()
		if len(one) != 1 || !slices.Equal(one, two) {
			return fmt.Errorf("%v answer, and then %v", one, two)
		}
		node = one[0]
		return nil
	})
	return node
}

// otherThan waits until another node than the former holder, and it alone, answers.
func (s *serving) otherThan(node string) (after string) {
	s.Helper()
	s.eventually(func() error {
		got := s.answering()
		if len(got) != 1 || got[0] == node {
			return fmt.Errorf("%v answer", got)
		}
		after = got[0]
		return nil
	})
	return after
}

func (s *serving) other(node string) string {
	if node == "web1" {
		return "web2"
	}
	return "web1"
}

// A listed is what service ls tells of the service.
type listed struct {
	Holders []string
	Flaps   int
	Nodes   map[string]string // their states
}

func (s *serving) list() (all listed) {
	s.Helper()
	var reply struct {
		Result []struct {
			Holders []string
			Flaps   int
			Nodes   []struct{ Node, State string }
		}
	}
	if err := json.Unmarshal([]byte(s.run("service", "ls", "--json").out), &reply); err != nil || len(reply.Result) != 1 {
		s.Fatal(reply, err)
	}
	all = listed{reply.Result[0].Holders, reply.Result[0].Flaps, map[string]string{}}
	for _, n := range reply.Result[0].Nodes {
		all.Nodes[n.Node] = n.State
	}
	return all
}

// ok returns an error if a condition does not hold.
func ok(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}
