package test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"orrery/internal/observe"
)

// listening is a service that serves a text from its settings file, and logs when it ends.
const listening = `
use Socket;
open(my $f, "<", "/etc/web.conf") or die "no settings\n";
my ($port) = <$f> =~ /^port (\d+)$/ or die "these settings say no port\n";
socket(S, PF_INET, SOCK_STREAM, 6) && setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1) && bind(S, sockaddr_in($port, inet_aton("127.0.0.1"))) && listen(S, 9) or die $!;
while (accept(C, S)) { close C }
`

// TestDrift: differences of a running node from its layers and roles are reported on request,
// repaired by up --probe, and then gone. What the node may change or has added is left alone.
func TestDrift(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-drift", `
[network.lan]
subnet = "10.99.133.0/24"
gateway = "10.99.133.1"
[image.debian]
suite = "bookworm"
[node."web{1..2}"]
id = 11
roles = ["web"]
`, files{
		"roles/web/role.toml": `
services = ["web.service"]
changes = ["/etc/web.state", "/usr/share/doc"]
[[file]]
path = "/usr/local/lib/web.pl"
source = "web.pl"
[[file]]
path = "/etc/systemd/system/web.service"
source = "web.service"
[[file]]
path = "/etc/web.conf"
template = "web.conf.tmpl"
owner = "nobody:nogroup"
mode = "0640"
[[file]]
path = "/etc/web.state"
template = "web.state.tmpl"
[[health]]
tcp = 8080
`,
		"roles/web/web.pl":         listening,
		"roles/web/web.service":    "[Service]\nExecStart=/usr/bin/perl /usr/local/lib/web.pl\n[Install]\nWantedBy=multi-user.target\n",
		"roles/web/web.conf.tmpl":  "port 8080\n# of {{ .Node.Name }}\n",
		"roles/web/web.state.tmpl": "begun\n",
	})
	s.do("up")
	s.run("status").want(0, `web1 .*healthy (now|\d+ s ago)`)
	looked := s.run("plan", "--probe").want(0, "nothing to do")
	t.Logf("plan --probe of two nodes took %s, plan %s", looked.took, s.run("plan").took)

	// Commands without --probe do not report it.
	other := s.sh("web2", "systemctl show -p MainPID web.service")
	s.sh("web1", "systemctl stop web.service; rm /usr/bin/tar; echo port 9 > /etc/web.conf; echo mine > /etc/web.state; echo mine > /usr/local/bin/mine; rm -rf /usr/share/doc")
	s.run("plan").want(0, "nothing to do")
	s.run("status").want(0)
	r := s.run("plan", "--probe", "-v").
		want(10, "repair +node web1", "program /usr/bin/tar is gone", "file /etc/web.conf is changed",
			"service web.service is stopped, not running", "health tcp 8080 is failing")
	if strings.Contains(r.out, "web2") || strings.Contains(r.out, "mine") || strings.Contains(r.out, "web.state") {
		t.Errorf("more is to be mended than has drifted:\n%s", r.out)
	}
	var planned struct {
		Steps []struct {
			Kind  string
			Drift []observe.Drift
		}
	}
	if err := json.Unmarshal(replied(s.run("plan", "--probe", "--json").want(10).out), &planned); err != nil ||
		len(planned.Steps) == 0 || len(planned.Steps[0].Drift) != 4 {
		t.Errorf("planned are %+v: %v", planned, err)
	}
	s.run("status", "--probe").want(11, `web1 .*unhealthy`, "file /etc/web.conf is changed")
	s.run("status").want(11, `web1 .*unhealthy`, "found .* UTC: health tcp 8080 is failing")
	s.run("up", "--probe", "web1").want(0, "repair", "web1 .*healthy")
	s.run("plan", "--probe").want(0, "nothing to do")
	s.run("status", "--probe").want(0, "web1 .*healthy now")
	if got := s.sh("web1", "tar --version | head -c 3; head -n 1 /etc/web.conf; stat -c '%U:%G %a' /etc/web.conf; cat /etc/web.state /usr/local/bin/mine; ls -d /usr/share/doc || true"); got != "tarport 8080\nnobody:nogroup 640\nmine\nmine" {
		t.Errorf("mended, web1 has %q", got)
	}

	// Other kinds of drift. What cannot be repaired is reported and left, and the rest is repaired.
	// The node serves again after the next run.
	s.sh("web1", "rm -r /usr/lib/x86_64-linux-gnu/perl-base /usr/local/lib/web.pl; mkdir /usr/local/lib/web.pl; systemctl disable web.service")
	s.sh("web2", "rm /usr/bin/ping; echo '#' >> /usr/bin/apt-key; mv /usr/bin/systemctl /usr/bin/elsewhere")
	s.run("plan", "--probe", "--steps").want(10, "/usr/lib/x86_64-linux-gnu/perl-base is gone", "web.pl is a directory",
		"service web.service is disabled", "apt-key is changed",
		"node web2 is silent \\(", "Disturbed: web1, web2")
	s.run("up", "--probe").want(8, "web1.*repair.*web.pl")
	s.sh("web1", "rmdir /usr/local/lib/web.pl")
	s.do("up", "--probe")
	s.run("plan", "--probe").want(0, "nothing to do")
	s.run("status", "--probe").want(0)
	s.sh("web1", "systemctl is-enabled web.service")
	s.sh("web2", "ping -c 1 127.0.0.1")
	if pid := s.sh("web2", "systemctl show -p MainPID web.service"); pid == other {
		t.Error("a program of web2 was changed, and its service goes on with it")
	}
	s.run("status", "--usage").want(0, `web1 .* \d+\.\d\d +\d+ +\d+ +\d+\.\d [KM]iB`)

	driftWatched(s)

	// A service that systemd gives up on is not waited for.
	s.edit("roles/web/web.conf.tmpl", "port 8080", "no port")
	began := time.Now()
	s.run("up", "web2").want(8, "web2 is not healthy: role web: tcp 8080 and web.service has failed",
		"web.service: these settings say no port")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// driftWatched: on a small terminal, the nodes are shown in place, only as many as fit. Keys scroll
// them, and end the display.
func driftWatched(s *site) {
	s.Helper()
	cmd, _, _ := s.command("status", "--watch", "--probe")
	cmd.Stdout, cmd.Stderr = nil, nil
	cmd.Env = append(cmd.Env, "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 3, Cols: 40})
	if err != nil {
		s.Fatal(err)
	}
	defer terminal.Close()
	var sent bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&sent, terminal) // it ends with EIO
	}()
	time.Sleep(3 * time.Second)
	_, err = terminal.WriteString("j")
	time.Sleep(time.Second)
	if _, again := terminal.WriteString("q"); err != nil || again != nil {
		s.Error(err, again)
	}
	impatient := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer impatient.Stop()
	if err := cmd.Wait(); err != nil {
		s.Errorf("status --watch: %v", err)
	}
	<-read
	screens := strings.Split(sent.String(), "\x1b[H")
	if len(screens) < 4 {
		s.Fatalf("it was drawn %d times: %q", len(screens), sent.String())
	}
	for _, screen := range screens[1:] {
		if strings.Count(screen, "\r\n") > 3 { // the last screen ends with one
			s.Errorf("more is drawn than there is room for: %q", screen)
		}
		if !strings.Contains(screen, "NODE") {
			s.Errorf("the heading is not in %q", screen)
		}
	}
	if first, last := screens[1], screens[len(screens)-1]; !strings.Contains(first, "web1") ||
		!strings.Contains(last, "web2") {
		s.Errorf("first it showed %q, and then %q", first, last)
	}
}
