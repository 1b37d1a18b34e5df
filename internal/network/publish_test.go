package network

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/nftables/userdata"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// publishing returns a network whose nodes publish ports.
func publishing(n spec.Network, all ...string) spec.Network {
	var list []spec.Published
	for i, text := range all {
		ports, to, _ := strings.Cut(text, ">")
		p, err := site.ParsePublish(ports)
		if err != nil {
			panic(err)
		}
		list = append(list, spec.Published{Node: fmt.Sprint("node", i), Publish: p, To: netip.MustParseAddr(to)})
	}
	n.Publish = spec.FormatPublished(list)
	return n
}

// TestPublishedRules shows the table of a site whose nodes publish ports.
func TestPublishedRules(t *testing.T) {
	open := publishing(data, "8080:80>10.8.68.9", "192.0.2.99:5000-5001:6000-6001/udp>10.8.68.10",
		"7000-7100:7000-7100>10.8.68.11")
	golden(t, "testdata/publish.txt", rules([]spec.Network{open}))
}

// TestPublishedInMemory: connections to published ports are translated, and nothing else is. Only
// translated connections get into a network.
func TestPublishedInMemory(t *testing.T) {
	open := publishing(data, "8080:80>10.8.68.9", "192.0.2.99:5000-5001:6000-6001/udp>10.8.68.10",
		"7000-7100:7000-7100>10.8.68.11")
	links := map[string]string{"cam": cam.Bridge, "data": data.Bridge}
	all := rules([]spec.Network{cam, open})
	table := inMemory(all)
	for _, c := range []struct{ what, chain, way, want string }{
		{"from outside", publish, "eth0 host 192.0.2.1 192.0.2.98 tcp/8080", "10.8.68.9:80"},
		{"at another address", publish, "eth0 host 192.0.2.1 198.51.100.1 tcp/8080", "10.8.68.9:80"},
		{"of the host itself", publishLocal, "host lo 192.0.2.98 192.0.2.98 tcp/8080", "10.8.68.9:80"},
		{"of the host itself at its loopback", publishLocal, "host lo 127.0.0.1 127.0.0.1 tcp/8080", ""},
		{"of the host to another machine", publishLocal, "host eth0 192.0.2.98 192.0.2.1 tcp/8080", ""},
		{"passing the host", publish, "eth0 eth1 192.0.2.1 198.51.100.1 tcp/8080", ""},
		{"the port below", publish, "eth0 host 192.0.2.1 192.0.2.98 tcp/8079", ""},
		{"the port above", publish, "eth0 host 192.0.2.1 192.0.2.98 tcp/8081", ""},
		{"another protocol", publish, "eth0 host 192.0.2.1 192.0.2.98 udp/8080", ""},
		{"at its address", publish, "eth0 host 192.0.2.1 192.0.2.99 udp/5001", "10.8.68.10:6001"},
		{"at another than its address", publish, "eth0 host 192.0.2.1 192.0.2.98 udp/5001", ""},
		{"a range without translation", publish, "eth0 host 192.0.2.1 192.0.2.98 tcp/7100", "10.8.68.11:0"},
		{"of a node", publish, "data host 10.8.68.10 192.0.2.98 tcp/8080", ""},
		{"of a node to its gateway", publish, "data host 10.8.68.10 10.8.68.1 tcp/8080", ""},
		{"of a node of another network", publish, "cam host 10.8.67.9 192.0.2.98 tcp/8080", ""},
		{"over IPv6", publish, "eth0 host 2001:db8::1 2001:db8::2 tcp/8080", ""},
	} {
		p := packet{way: c.way}.seen(links)
		p.Local = strings.Contains(c.way, " host ") || strings.HasPrefix(c.way, "host lo")
		got := ""
		if to := table.Run(c.chain, p).To; to.IsValid() {
			got = to.String()
		}
		if got != c.want {
			t.Errorf("%s: it leads to %q, not %q", c.what, got, c.want)
		}
	}
	send(t, all, links, []packet{
		{"in", "eth0 data 192.0.2.1 10.8.68.9 tcp/80 translated", "pass", nil},
		{"in, of a range", "eth0 data 192.0.2.1 10.8.68.11 tcp/7050 translated", "pass", nil},
		{"in, not translated", "eth0 data 192.0.2.1 10.8.68.9 tcp/80", "drop", nil},
		{"in, translated to another port", "eth0 data 192.0.2.1 10.8.68.9 tcp/81 translated", "drop", nil},
		{"in, translated to another node", "eth0 data 192.0.2.1 10.8.68.12 tcp/80 translated", "drop", nil},
		{"in, of another network", "cam data 10.8.67.9 10.8.68.9 tcp/80 translated", "drop", nil},
		{"in, an error about it", "eth0 data 192.0.2.1 10.8.68.9 icmp/3 translated established", "pass", nil},
		{"an answer", "data eth0 10.8.68.9 192.0.2.1 tcp/40000 established translated", "pass", nil},
		{"an answer of nothing that was translated", "data eth0 10.8.68.9 192.0.2.1 tcp/40000 established", "drop", nil},
		{"no answer", "data eth0 10.8.68.9 192.0.2.1 tcp/40000", "drop", nil},
		{"no answer, translated", "data eth0 10.8.68.9 192.0.2.1 tcp/40000 translated", "drop", nil},
		{"to another network", "data cam 10.8.68.9 10.8.67.9 tcp/80 established translated", "drop", nil},
		{"an answer to the host itself", "data host 10.8.68.9 192.0.2.98 tcp/40000 established translated", "pass", nil},
	})
}

// TestPublishedWithoutRules: the table of a network that publishes nothing is as before.
func TestPublishedWithoutRules(t *testing.T) {
	for _, r := range rules([]spec.Network{cam, data, closed}) {
		if r.chain == publish || r.chain == publishLocal || r.translated {
			t.Errorf("there is a rule %s", r)
		}
	}
}

// TestPublishedRecord: rules carry what they were made for, within the limits of the kernel and of
// nft(8), and what others write into rules does no harm.
func TestPublishedRecord(t *testing.T) {
	long := data
	long.Name = strings.Repeat("n", 63)
	long.Publish = spec.FormatPublished([]spec.Published{{
		Node: strings.Repeat("x", 63), To: netip.MustParseAddr("10.8.68.254"),
		Publish: site.Publish{Address: netip.MustParseAddr("192.168.200.200"),
			Ports: site.PortRange{Proto: "tcp", First: 65000, Last: 65100}, NodePort: 64000},
	}})
	ports := map[string][]spec.Published{}
	for _, r := range publishRules(long) {
		if len(r.comment()) > 127 || len(r.userData()) > 256 {
			t.Fatalf("%d and %d bytes: %s", len(r.comment()), len(r.userData()), r.comment())
		}
		addRecord(ports, r.comment(), r.userData())
	}
	if got := spec.FormatPublished(ports[long.Name]); got != long.Publish || len(ports) != 1 {
		t.Errorf("it is read as %v", ports)
	}
	for _, record := range []string{"", "x", "=", "a=8080:80>", "a=8080:80>x", "a=80>10.0.0.1", "=8080:80>10.0.0.1"} {
		found := map[string][]spec.Published{}
		addRecord(found, "lan: publish (1)", userdata.AppendString(nil, recordType, record))
		if len(found) > 0 {
			t.Errorf("%q is read as %v", record, found)
		}
	}
}

// TestPublishedHostile: what a step says of ports is checked before anything is changed.
func TestPublishedHostile(t *testing.T) {
	for what, list := range map[string]string{
		"no list": "x", "outside": "a=80:80/tcp>10.8.69.1", "the gateway": "a=80:80/tcp>10.8.68.1",
		"IPv6": "a=80:80/tcp>fd00::1", "no port": "a=0:80/tcp>10.8.68.9", "loopback": "a=80:80/tcp>127.0.0.1",
	} {
		n := data
		n.Publish = list
		if err := check(n); !problem.Is(err, problem.Unable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	apart := closed
	apart.Publish = "a=80:80/tcp>10.8.69.9"
	if err := check(apart); !problem.Is(err, problem.Unable) {
		t.Errorf("without a gateway: %v", err)
	}
}
