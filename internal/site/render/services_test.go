package render

import (
	"bufio"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"orrery/internal/site"
	"orrery/internal/site/service"
)

// served returns a site with two services, one of which has node web1 first, and the other web2.
func served(health ...site.HealthCheck) *site.Site {
	node := func(name, last string) site.Node {
		return site.Node{Name: name, Roles: []string{"web"}, NICs: []site.NIC{
			{Network: "data", Address: netip.MustParseAddr("10.2.0." + last)},
			{Network: "cam", Address: netip.MustParseAddr("10.1.0." + last)}}}
	}
	s := &site.Site{Name: "karoo", Nodes: []site.Node{node("web1", "11"), node("web2", "12"), node("other", "13")},
		Roles: []site.Role{{Name: "web", Env: map[string]string{"WORD": "it's"}, Health: health}, {Name: service.Role}},
		Services: []service.Service{
			{Name: "portal", Address: netip.MustParseAddr("10.1.0.5"), Network: "cam", Nodes: []string{"web1", "web2"},
				Advertise: 200 * time.Millisecond},
			{Name: "data", Address: netip.MustParseAddr("10.2.0.6"), Network: "data", Nodes: []string{"web2", "web1", "gone"},
				Advertise: time.Second}}}
	s.AddServices()
	return s
}

// TestServices: a node knows its services, its link to each, and the other nodes. The first node of a service
// has the highest priority.
func TestServices(t *testing.T) {
	s := served()
	v := New(s)
	got := v.services("web1")
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	portal, data := got[0], got[1]
	if portal.Interface != "eth1" || portal.Own.String() != "10.1.0.11" || portal.Advertise != "0.2" ||
		portal.RouterID != 5 || len(portal.Peers) != 1 || portal.Peers[0].Address.String() != "10.1.0.12" ||
		portal.Peers[0].MAC != site.MAC("karoo", "web2", "cam") {
		t.Errorf("%+v", portal)
	}
	if data.Interface != "eth0" || data.Advertise != "1" || len(data.Peers) != 1 || portal.Priority <= data.Priority {
		t.Errorf("%+v", data)
	}
	if v.services("other") != nil || v.services("nobody") != nil {
		t.Error("another node has services")
	}
	if n, _ := s.Node("web1"); len(n.NICs[1].Moving) != 1 || n.NICs[1].Moving[0] != portal.Address || len(n.Roles) != 2 {
		t.Errorf("node web1 is %+v", n)
	}
	if n, _ := s.Node("other"); len(n.NICs[1].Moving) != 0 || len(n.Roles) != 1 {
		t.Errorf("node other is %+v", n)
	}
}

// TestAnswers: a node knows which active services it answers, and for whom.
func TestAnswers(t *testing.T) {
	s := served()
	s.Networks = []site.Network{{Name: "cam", Subnet: netip.MustParsePrefix("10.1.0.0/24")}}
	s.Active = []service.Active{{Name: "time", Kind: service.NTP, Network: "cam", Nodes: []string{"web1"}}}
	v := New(s)
	got := v.answers("web1")
	if len(got) != 1 || got[0] != (AnswerView{"time", service.NTP, s.Networks[0].Subnet}) {
		t.Errorf("%+v", got)
	}
	if v.answers("web2") != nil || v.answers("nobody") != nil {
		t.Error("another node answers")
	}
}

// TestHealthScript runs the script with checks of each kind that succeed and that fail.
func TestHealthScript(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const answer = "HTTP/1.1 200 OK\r\n\r\n"
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = c.Write([]byte(answer))
				}
			}()
		}
	}()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port, none := l.Addr().(*net.TCPAddr).Port, closed.Addr().(*net.TCPAddr).Port
	closed.Close()
	url := "http://" + l.Addr().String() + "/x?y=1&z='2"
	for name, c := range map[string]struct {
		check site.HealthCheck
		want  bool
	}{
		"command":             {site.HealthCheck{Command: []string{"test", "$0 'x'", "=", "$0 'x'"}}, true},
		"command fails":       {site.HealthCheck{Command: []string{"false"}}, false},
		"environment":         {site.HealthCheck{Command: []string{"sh", "-c", `test "$WORD $ORRERY_NODE" = "it's web1"`}}, true},
		"command takes long":  {site.HealthCheck{Command: []string{"sleep", "60"}, Timeout: 100 * time.Millisecond}, false},
		"tcp":                 {site.HealthCheck{TCP: port}, true},
		"tcp by a parameter":  {site.HealthCheck{TCPParam: "{{.Param.port}}"}, true},
		"http by a parameter": {site.HealthCheck{HTTP: "http://127.0.0.1:{{.Param.port}}/"}, true},
		"tcp, none listens":   {site.HealthCheck{TCP: none}, false},
		"http":                {site.HealthCheck{HTTP: url}, true},
		"http, none listens":  {site.HealthCheck{HTTP: "http://" + closed.Addr().String() + "/"}, false},
		"mount":               {site.HealthCheck{Mount: "/proc"}, true},
		"mount, none":         {site.HealthCheck{Mount: "/proc/self"}, false},
		"dns, none listens":   {site.HealthCheck{DNS: "x.example@127.0.0.77"}, false},
		"ntp, none listens":   {site.HealthCheck{NTP: "127.0.0.77"}, false},
		"unit that is absent": {site.HealthCheck{Unit: "none-such.service"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.check.Timeout == 0 {
				c.check.Timeout = 20 * time.Second
			}
			script := `path=PATH=/usr/sbin:/usr/bin:/sbin:/bin
check() { timeout --kill-after=1 "$1" env -i "$path" "${common[@]}" "${vars[@]}" "${@:2}" </dev/null >/dev/null 2>&1 || exit 1; }
`
			s := served(c.check)
			s.Roles[0].Params = []site.Param{{Name: "port", Type: "int", Default: int64(port)}}
			script += New(s).healthScript("web1")
			out, err := exec.Command("bash", "-c", script).CombinedOutput()
			if got := err == nil; got != c.want || len(out) > 0 {
				t.Errorf("it succeeds: %t (%v)\n%s\n%s", got, err, out, script)
			}
		})
	}
}

// TestDatagrams: a server that answers over UDP makes the checks succeed, unless its answer is none.
func TestDatagrams(t *testing.T) {
	ask := func(reply []byte, condition string) bool {
		server, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		go func() {
			b := make([]byte, 512)
			for {
				_, from, err := server.ReadFrom(b)
				if err != nil {
					return
				}
				_, _ = server.WriteTo(reply, from)
			}
		}()
		script := askDatagram(server.LocalAddr().(*net.UDPAddr).Port, condition)
		args := append([]string{"-c", script, "check", "127.0.0.1"}, dnsQueries("a.example")...)
		return exec.Command("bash", args...).Run() == nil
	}
	w := &healthWriter{}
	dns := w.command(&site.HealthCheck{DNS: "a.example"})
	_, condition, _ := strings.Cut(dns[2], "continue\n")
	condition, _, _ = strings.Cut(condition, "\ndone")
	for name, c := range map[string]struct {
		reply []byte
		want  bool
	}{
		"an address": {[]byte{0x4f, 0x52, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0}, true},
		"no address": {[]byte{0x4f, 0x52, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, false},
		"no name":    {[]byte{0x4f, 0x52, 0x81, 0x83, 0, 1, 0, 1, 0, 0, 0, 0}, false},
		"a question": {[]byte{0x4f, 0x52, 0x01, 0x80, 0, 1, 0, 1, 0, 0, 0, 0}, false},
		"too short":  {[]byte{1, 2, 3}, false},
	} {
		if got := ask(c.reply, condition); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
