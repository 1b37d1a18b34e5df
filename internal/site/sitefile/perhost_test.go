package sitefile_test

import (
	"fmt"
	"strings"
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

const perHostSite = `site.name = "x"
[host.sv1]
[host.sv2]
address = "root@10.8.1.2"

[network.lan]
subnet = "10.9.0.0/16"
gateway = "10.9.0.1"
[image.debian]
suite = "bookworm"
[node.db]
id = 101
host = "sv1"
[node.infra]
id = 900
per = "host"
net.lan = "10.9.9.1"
publish = ["8053:53/udp"]
[group.infra]
nodes = ["infra-*"]
`

func perHostNodes(t *testing.T, s *site.Site) (all []string) {
	t.Helper()
	for _, n := range s.Nodes {
		if n.PerHost != "" {
			all = append(all, fmt.Sprint(n.Name, " on ", n.Host, " ", n.ID, " ", n.NICs[0].Address, " ",
				n.Publish[0].Ports.First))
		}
	}
	return all
}

// TestPerHost: each host has a node of a declaration with per, numbered by the host. Hosts that come and go
// change no other node.
func TestPerHost(t *testing.T) {
	load := func(text string) string {
		t.Helper()
		s, err := sitefile.Load(written(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(perHostNodes(t, s), ", ")
	}
	want := "infra-sv1 on sv1 900 10.9.9.1 8053, infra-sv2 on sv2 901 10.9.9.2 8053"
	if got := load(perHostSite); got != want {
		t.Errorf("the nodes are %s", got)
	}
	one := strings.Replace(perHostSite, "per = \"host\"", "per = \"host\"\nhosts = [\"sv2\"]", 1)
	if got := load(one); got != "infra-sv2 on sv2 901 10.9.9.2 8053" {
		t.Errorf("with a list, the nodes are %s", got)
	}
	numbered := strings.NewReplacer("[host.sv1]", "[host.sv1]\nnumber = 4", "\"root@10.8.1.2\"", "\"root@10.8.1.2\"\nnumber = 7")
	if got := load(numbered.Replace(perHostSite)); got != "infra-sv1 on sv1 903 10.9.9.4 8053, "+
		"infra-sv2 on sv2 906 10.9.9.7 8053" {
		t.Errorf("with numbers, the nodes are %s", got)
	}
	alone := strings.NewReplacer("[host.sv1]\n[host.sv2]\naddress = \"root@10.8.1.2\"\n\n", "", "host = \"sv1\"\n", "")
	if got := load(alone.Replace(perHostSite)); got != "infra-local on local 900 10.9.9.1 8053" {
		t.Errorf("without hosts, the nodes are %s", got)
	}
}

// TestEditPerHost: a host is added and removed together with the node that it has, unless others would get
// another number.
func TestEditPerHost(t *testing.T) {
	dir := written(t, perHostSite)
	e, err := sitefile.AddHost(dir, "sv3", "root@10.8.1.3")
	if err == nil {
		err = e.Write()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := perHostNodes(t, e.Site); len(got) != 3 || got[2] != "infra-sv3 on sv3 902 10.9.9.3 8053" {
		t.Errorf("with another host, the nodes are %s", got)
	}
	if e, err = sitefile.RemoveHost(dir, "sv2"); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(); err == nil || !strings.Contains(err.Error(), "number") {
		t.Errorf("a host before others is removed: %v", err)
	}
	if e, err = sitefile.RemoveHost(dir, "sv3"); err == nil {
		err = e.Write()
	}
	if err != nil || textOf(t, dir) != perHostSite {
		t.Errorf("removed again (%v), the file is\n%s", err, textOf(t, dir))
	}
}
