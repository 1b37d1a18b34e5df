package role

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// answering is a node whose commands print what a map says, and whose servers answer datagrams.
type answering struct {
	host.Runner
	says   map[string]string // by command
	fails  map[string]error
	hangs  map[string]bool
	server func(query []byte) []byte
}

func (a *answering) Run(ctx context.Context, c host.Command) error {
	args := strings.Join(c.Args, " ")
	if a.hangs[args] {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if _, err := io.WriteString(c.Stdout, a.says[args]); err != nil {
		return err
	}
	return a.fails[args]
}

func (a *answering) Dial(_ context.Context, network, _ string) (net.Conn, error) {
	if network != "udp" {
		return nil, errors.New("not a datagram")
	}
	ours, theirs := net.Pipe()
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := theirs.Read(buf)
			if err != nil {
				return
			}
			if answer := a.server(buf[:n]); answer != nil {
				if _, err := theirs.Write(answer); err != nil {
					return
				}
			}
		}
	}()
	return ours, nil
}

func (a *answering) check(t *testing.T, h site.HealthCheck) string {
	t.Helper()
	if h.Timeout == 0 {
		h.Timeout = 20 * time.Second
	}
	if err := runCheck(t.Context(), a, &spec.RoleActions{Node: "db"}, &h, nil); err != nil {
		return err.Error()
	}
	return "healthy"
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestMountCheck: only a mount whose file system answers is healthy; the directory below it is not enough.
func TestMountCheck(t *testing.T) {
	const list = "cat /proc/self/mountinfo"
	mounts := "36 35 98:0 / / rw - ext4 /dev/root rw\n37 36 0:5 /x /srv/a\\040b rw - nfs db:/a rw\nbroken line\n"
	a := &answering{says: map[string]string{list: mounts}, hangs: map[string]bool{"stat --file-system -- /srv/hung": true}}
	expect(t, "mounted", a.check(t, site.HealthCheck{Mount: "/srv/a b"}), "healthy")
	expect(t, "empty directory", a.check(t, site.HealthCheck{Mount: "/srv"}), "nothing is mounted there")
	expect(t, "part of a path", a.check(t, site.HealthCheck{Mount: "/srv/a"}), "nothing is mounted there")
	a.says[list] += "38 36 0:6 / /srv/hung rw - nfs db:/h rw\n"
	expect(t, "hung", a.check(t, site.HealthCheck{Mount: "/srv/hung", Timeout: time.Millisecond}), "does not answer")
}

// TestUnitCheck: a unit that is not active is unhealthy, and its state is shown without control characters.
func TestUnitCheck(t *testing.T) {
	command := strings.Join(slices.Concat(distro.All[0].Services.Active, []string{"db.service"}), " ")
	a := &answering{says: map[string]string{command: "active\n"}, fails: map[string]error{}}
	expect(t, "active", a.check(t, site.HealthCheck{Unit: "db.service"}), "healthy")
	a.says[command], a.fails[command] = "activating\x1b[2J\n", errors.New("exit status 3")
	got := a.check(t, site.HealthCheck{Unit: "db.service"})
	expect(t, "activating", got, "it is activating")
	if strings.Contains(got, "\x1b") {
		t.Errorf("an escape sequence of the node is shown: %q", got)
	}
}

// TestDNSCheck: a name is healthy if the server answers the question with an address.
func TestDNSCheck(t *testing.T) {
	address := func(q dnsmessage.Question) dnsmessage.Resource {
		return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body: map[dnsmessage.Type]dnsmessage.ResourceBody{dnsmessage.TypeA: &dnsmessage.AResource{},
				dnsmessage.TypeAAAA: &dnsmessage.AAAAResource{}}[q.Type]}
	}
	all := func(dnsmessage.Question) bool { return true }
	for name, c := range map[string]struct {
		answer func(m *dnsmessage.Message)
		known  func(q dnsmessage.Question) bool
		want   string
	}{
		"known":      {nil, all, "healthy"},
		"only IPv6":  {nil, func(q dnsmessage.Question) bool { return q.Type == dnsmessage.TypeAAAA }, "healthy"},
		"no address": {nil, func(dnsmessage.Question) bool { return false }, "knows no address of this name"},
		"no such name": {func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeNameError },
			func(dnsmessage.Question) bool { return false }, "knows no address of this name"},
		"broken server": {func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeServerFailure }, all, "RCodeServerFailure"},
		"of another":    {func(m *dnsmessage.Message) { m.ID++ }, all, "no answer within"},
		"to another": {func(m *dnsmessage.Message) { m.Questions[0].Name = dnsmessage.MustNewName("x.") }, all,
			"no answer within"},
		"no answer": {func(m *dnsmessage.Message) { m.Response = false }, all, "no answer within"},
	} {
		a := &answering{server: func(query []byte) []byte {
			var m dnsmessage.Message
			if err := m.Unpack(query); err != nil {
				t.Error(err)
			}
			m.Response = true
			if c.known(m.Questions[0]) {
				m.Answers = append(m.Answers, address(m.Questions[0]))
			}
			if c.answer != nil {
				c.answer(&m)
			}
			packet, err := m.Pack()
			if err != nil {
				t.Error(err)
			}
			return packet
		}}
		h := site.HealthCheck{DNS: "portal.example@10.0.0.1"}
		if strings.HasPrefix(c.want, "no answer") {
			h.Timeout = 20 * time.Millisecond
		}
		expect(t, name, a.check(t, h), c.want)
	}
}

// TestTimeCheck: the server must be synchronized, and close enough to the host's clock.
func TestTimeCheck(t *testing.T) {
	// ntpTime returns a time as of RFC 5905, section 6: seconds since 1900 and their fraction, 32 bits each.
	ntpTime := func(at time.Time) uint64 {
		return uint64(at.Unix()+2208988800)<<32 | uint64(at.Nanosecond())<<32/1e9
	}
	for name, c := range map[string]struct {
		leap, stratum byte
		ahead         time.Duration
		most          time.Duration
		want          string
	}{
		"right":          {0, 2, 0, 0, "healthy"},
		"unsynchronized": {3, 2, 0, 0, "leap"},
		"kiss of death":  {0, 0, 0, 0, "kiss of death"},
		"ahead":          {0, 2, 5 * time.Second, 0, "from that of the host (at most 1s is allowed)"},
		"behind":         {0, 2, -time.Hour, 0, "from that of the host"},
		"allowed":        {0, 2, 5 * time.Second, time.Minute, "healthy"},
	} {
		a := &answering{server: func(query []byte) []byte {
			answer := make([]byte, 48)
			answer[0], answer[1] = c.leap<<6|4<<3|4, c.stratum
			now := ntpTime(time.Now().Add(c.ahead))
			binary.BigEndian.PutUint64(answer[16:], now-1<<32) // reference
			copy(answer[24:32], query[40:48])                  // origin: what the client sent
			binary.BigEndian.PutUint64(answer[32:], now)       // received
			binary.BigEndian.PutUint64(answer[40:], now)       // sent
			return answer
		}}
		got := a.check(t, site.HealthCheck{NTP: "10.0.0.1", MaxOffset: c.most})
		expect(t, name, strings.ToLower(got), strings.ToLower(c.want))
	}
	a := &answering{server: func([]byte) []byte { return nil }}
	expect(t, "silent", a.check(t, site.HealthCheck{NTP: "10.0.0.1", Timeout: 20 * time.Millisecond}), "no answer within")
}
