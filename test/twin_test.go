package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	modelled "orrery/internal/site"
)

// doubled is a site with something of everything that differs between a twin and its original.
const doubled = `
[network.lan]
subnet = "10.99.116.0/24"
gateway = "10.99.116.1"
nat = true
host = ["all"]
[network.data]
subnet = "10.99.117.0/24"
[image.debian]
suite = "bookworm"
[defaults]
memory = "128MiB"
[node.front]
id = 11
roles = ["edition"]
cpus = 0.5
net = { lan = "auto", data = "auto" }
[node.store]
id = 12
roles = ["store"]
net = { lan = "auto", data = "auto" }
[node.dish]
id = 13
roles = ["dish"]
net = { lan = "auto" }
[node.gauge]
id = 14
roles = ["gauge"]
simulated_by = "gauge-sim"
net = { lan = "auto" }
[release.7.roles]
edition = "edition2"
`

var doubledFiles = files{
	"roles/tell/role.toml": `
services = ["tell.service"]
file = [
  { path = "/usr/local/lib/tell.py", source = "tell.py" }, { path = "/usr/local/lib/who.py", source = "who.py" },
  { path = "/usr/local/lib/talk.py", source = "talk.py" },
  { path = "/etc/systemd/system/tell.service", content = "[Service]\nExecStart=/usr/bin/python3 /usr/local/lib/tell.py\n[Install]\nWantedBy=multi-user.target\n" },
]
[[health]]
tcp = 7000
`,
	"roles/tell/tell.py":        tell,
	"roles/tell/who.py":         asksWho,
	"roles/tell/talk.py":        talks,
	"roles/edition/role.toml":   "file = [{ path = \"/etc/edition\", content = \"first\\n\" }]\nneeds.roles = [\"tell\"]\n",
	"roles/edition2/role.toml":  "file = [{ path = \"/etc/edition\", content = \"second\\n\" }]\nneeds.roles = [\"tell\"]\n",
	"roles/store/role.toml":     "volume = [{ name = \"data\", path = \"/srv/data\" }]\nneeds.roles = [\"tell\"]\n",
	"roles/dish/role.toml":      "file = [{ path = \"/etc/dish\", content = \"real\\n\" }]\nsimulated_by = \"dish-sim\"\nneeds.roles = [\"tell\"]\n",
	"roles/dish-sim/role.toml":  "file = [{ path = \"/etc/dish\", content = \"simulated\\n\" }]\nneeds.roles = [\"tell\"]\n",
	"roles/gauge/role.toml":     "file = [{ path = \"/etc/gauge\", content = \"real\\n\" }]\nneeds.roles = [\"tell\"]\n",
	"roles/gauge-sim/role.toml": "file = [{ path = \"/etc/gauge\", content = \"simulated\\n\" }]\nneeds.roles = [\"tell\"]\n",
}

// tell counts, and reports to each client its owner's name and the data that it received.
const tell = `
import socket, threading, time

def count():
    n = 0
    while True:
        n += 1
        with open("/run/count", "w") as f:
            f.write(str(n))
        time.sleep(0.05)

def answer(c):
    with c:
        told = b""
        while part := c.recv(65536):
            told += part
        c.sendall(open("/run/mark", "rb").read() + told)

threading.Thread(target=count, daemon=True).start()
s = socket.create_server(("", 7000))
while True:
    threading.Thread(target=answer, args=(s.accept()[0],), daemon=True).start()
`

// asksWho connects to all given ADDRESS:PORT and prints for each which server answers, or "-" for
// none.
const asksWho = `
import socket, sys, threading

def ask(target):
    host, port = target.split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1.5) as c:
            c.shutdown(socket.SHUT_WR)
            who = c.recv(100).decode() or "-"
    except OSError:
        who = "-"
    print(target + " " + who + "\n", end="", flush=True)

for target in sys.argv[1:]:
    threading.Thread(target=ask, args=(target,)).start()
`

// talks sends a mark in every way to every address: PEER, a nonexistent GHOST, BROADCAST, groups,
// and raw frames on each interface.
const talks = `
import os, socket, sys, threading, time

mark, peer, ghost, broadcast = bytes.fromhex(sys.argv[1]) * 64, *sys.argv[2:5]
end = time.time() + float(sys.argv[5])
links = [l for l in os.listdir("/sys/class/net") if l != "lo"]

def connect():
    while time.time() < end:
        try:
            with socket.create_connection((peer, 7000), timeout=1) as c:
                c.sendall(mark * 50)
                c.shutdown(socket.SHUT_WR)
                while c.recv(65536):
                    pass
        except OSError:
            pass

threading.Thread(target=connect).start()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
raw = []
for link in links:
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((link, 0))
    raw.append((s, s.getsockname()[4]))
while time.time() < end:
    says = [lambda a=a: udp.sendto(mark, (a, 5353)) for a in (peer, ghost, broadcast, "255.255.255.255", "224.0.0.251", "239.1.2.3")]
    says += [lambda l=l: six.sendto(mark, ("ff02::fb", 5353, 0, socket.if_nametoindex(l))) for l in links]
    says += [lambda s=s, m=m, to=to: s.send(to + m + b"\x88\xb5" + mark) for s, m in raw for to in (b"\xff" * 6, b"\x01\x00\x5e\x00\x00\xfb", m)]
    for say in says:
        try:
            say()
        except OSError:
            pass
    time.sleep(0.005)
`

// A double is the site itself or a twin of it.
type double struct {
	*site
	twin string // "" for the site itself
	mark string // the text that its nodes send, in hexadecimal
}

func (d double) key() string {
	if d.twin == "" {
		return d.name
	}
	return d.name + "." + d.twin
}

func (d double) run(args ...string) result {
	d.Helper()
	return d.site.run(append(twinArgs(d.twin), args...)...)
}

func (d double) do(args ...string) string {
	d.Helper()
	return d.run(args...).want(0).out
}

func (d double) sh(node, script string) string {
	d.Helper()
	return strings.TrimSpace(d.do("shell", node, "--", "/bin/sh", "-c", script))
}

// as returns the site under the name under which the host stores the twin, for checks of the host.
func (d double) as() *site {
	s := *d.site
	s.name = d.key()
	return &s
}

// sign writes to all nodes which double they belong to.
func (d double) sign() {
	d.Helper()
	d.do("exec", "all", "--", "/bin/sh", "-c", "printf %s "+d.mark+" > /run/mark")
}

func (d double) whole() {
	d.Helper()
	d.run("plan").want(0)
	d.run("status", "--probe").want(0)
}

// asks returns which server answers at each ADDRESS:PORT that a node connects to.
func (d double) asks(node string, targets ...string) map[string]string {
	d.Helper()
	answers := map[string]string{}
	for line := range strings.Lines(d.do(append([]string{"shell", node, "--", "python3", "/usr/local/lib/who.py"},
		targets...)...)) {
		target, who, _ := strings.Cut(strings.TrimSpace(line), " ")
		answers[target] = who
	}
	return answers
}

func (d double) wantAnswers(node string, want map[string]string) {
	d.Helper()
	got := d.asks(node, slices.Sorted(maps.Keys(want))...)
	for target, who := range want {
		if got[target] != who {
			d.Errorf("%s of %s: at %s answers %s, want %s", node, d.key(), target, got[target], who)
		}
	}
}

// TestTwin: production and twins of it have the same addresses, and the twins support every
// command.
func TestTwin(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-twin", doubled, doubledFiles)
	twins := []string{"dev1", "dev2", "part", "toy", "brief", "cut"}
	s.Cleanup(func() { // before the site itself is destroyed
		for _, twin := range twins {
			if _, err := os.Stat(s.dirs.Site(s.name + "." + twin)); err == nil {
				_ = s.run("--force", "twin", "destroy", twin)
			}
		}
	})
	s.do("up")
	original := double{s, "", "0b1e55ed"}
	original.sign()
	s.sh("store", "echo before > /srv/data/rows; sync")
	undisturbed := s.undisturbed()

	dev1, dev2 := double{s, "dev1", "deadbeef"}, double{s, "dev2", "feedface"}
	s.run("twin", "create", s.dir, "dev1").want(0, "front .*healthy")
	s.run("twin", "create", s.name, "dev2", "--nat", "--volumes", "snapshot").want(0) // by its name, since it is up here
	all := []double{original, dev1, dev2}
	brief := &expiring{double: double{s, "brief", ""}}
	for _, part := range []struct {
		name string
		do   func(s *site, all []double)
	}{
		{"Same", twinSame}, {"Disk", twinDisk}, {"Unheard", twinUnheard}, {"Reach", twinReach}, {"Volumes", twinVolumes},
		{"Brief", brief.create}, {"Options", twinOptions}, {"Owner", twinOwner}, {"Collapse", twinCollapse},
		{"Verbs", twinVerbs}, {"Releases", twinReleases},
		{"Mistakes", twinMistakes}, {"Expires", brief.expires}, {"Killed", twinKilled},
	} {
		t.Run(part.name, func(t *testing.T) {
			mine := s.of(t)
			var theirs []double
			for _, d := range all {
				d.site = mine
				theirs = append(theirs, d)
			}
			part.do(mine, theirs)
		})
	}
	undisturbed()
	twinEnd(s, dev1, dev2)
}

// undisturbed returns a function that checks that nothing has happened to production since.
func (s *site) undisturbed() func() {
	s.Helper()
	counts := func() (pids, n string) {
		return s.sh("front", "systemctl show -P MainPID -P NRestarts tell.service"), s.sh("front", "cat /run/count")
	}
	records := func() map[string]string {
		all := map[string]string{}
		for _, path := range glob(s.dirs.Nodes(s.name) + "/*/node.json") {
			text, _ := os.ReadFile(path)
			all[path] = string(text)
		}
		return all
	}
	inits := func() (all []string) {
		for _, node := range []string{"front", "store", "dish", "gauge"} {
			all = append(all, s.init(node))
		}
		return all
	}
	pids, _ := counts()
	before, began, running := records(), time.Now(), inits()
	return func() {
		s.Helper()
		after, n := counts()
		if least := int(time.Since(began).Seconds()) * 5; after != pids || atoi(n) < least {
			// It counts 20 times a second on an idle machine.
			s.Errorf("the counter of production was %s and is %s, at %s after %s", pids, after, n, time.Since(began))
		}
		if now := records(); !maps.Equal(now, before) {
			s.Errorf("the records of production were\n%v\nand are\n%v", before, now)
		}
		if now := inits(); !slices.Equal(now, running) {
			s.Errorf("the nodes of production were %v and are %v", running, now)
		}
		s.settled()
	}
}

func atoi(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

// twinSame: each of them is complete, and its nodes see each other as in the others.
func twinSame(s *site, all []double) {
	seen := map[string]bool{}
	for _, d := range all {
		d.sign()
		d.whole()
		out := ""
		for _, node := range []string{"front", "store", "dish", "gauge"} {
			out += node + " " + d.sh(node,
				"hostname; cat /etc/machine-id; cat /sys/class/net/*/address; ip -4 -o address | grep -o 'inet [0-9./]*'; grep -v '^#' /etc/hosts | sort")
		}
		if want := modelled.MAC(s.name, "front", "lan"); !strings.Contains(out, want) {
			s.Errorf("%s: no interface has the address %s\n%s", d.key(), want, out)
		}
		seen[out] = true
		want := "simulated"
		if d.twin == "" {
			want = "real"
		}
		if dish, gauge := d.sh("dish", "cat /etc/dish"), d.sh("gauge", "cat /etc/gauge"); dish != want || gauge != want {
			s.Errorf("%s: dish is %s, gauge is %s, want %s", d.key(), dish, gauge, want)
		}
	}
	if len(seen) != 1 {
		s.Errorf("they are not the same:\n%s", strings.Join(slices.Collect(maps.Keys(seen)), "\n"))
	}
	keys := map[string]bool{}
	for _, d := range all {
		keys[d.sh("front", "cat /etc/ssh/ssh_host_ed25519_key.pub")] = true
	}
	if len(keys) != len(all) {
		s.Error("a twin has the SSH host keys of another")
	}
}

// twinDisk: a twin uses hardly any disk space.
func twinDisk(s *site, all []double) {
	out, err := sh("du -sk " + s.dirs.Site(all[1].key()) + " | cut -f1")
	if kib := atoi(out); err != nil || kib > 4*1024 {
		s.Errorf("a twin of 4 nodes takes %d KiB: %v", kib, err)
	}
}

// twinUnheard: whatever the twins send, nothing of it is on a bridge of the others.
func twinUnheard(s *site, all []double) {
	type heard struct {
		double
		network string
		frames  func() [][]byte
	}
	var ears []heard
	for _, d := range all {
		for _, network := range []string{"lan", "data"} {
			ears = append(ears, heard{d, network, s.capture(d.key(), network)})
		}
	}
	var talking sync.WaitGroup
	for i, d := range all {
		for from, to := range map[string]string{"front": "12", "store": "11"} {
			for _, subnet := range []string{"10.99.116.", "10.99.117."} {
				script := fmt.Sprintf("python3 /usr/local/lib/talk.py %s %s%s %s20%d %s255 1.5 & ping -f -q -w 1 -p %s %s%s >/dev/null; wait",
					d.mark, subnet, to, subnet, i, subnet, d.mark, subnet, to)
				talking.Go(func() {
					if r := d.run("shell", from, "--", "/bin/sh", "-c", script); r.status != 0 {
						s.Errorf("%s of %s does not talk: %d %s%s", from, d.key(), r.status, r.out, r.errs)
					}
				})
			}
		}
	}
	talking.Wait()
	for _, ear := range ears {
		counts := map[string]int{}
		for _, frame := range ear.frames() {
			for i, d := range all {
				said := fmt.Sprintf("%s%s", unhex(d.mark), unhex(d.mark))
				ghost := []byte{10, 99, 116, 200 + byte(i)}
				if ear.network == "data" {
					ghost[2] = 117
				}
				arp := len(frame) >= 42 && frame[12] == 8 && frame[13] == 6 && bytes.Equal(frame[38:42], ghost)
				switch {
				case bytes.Contains(frame, []byte(said)):
					counts["said by "+d.key()]++
				case arp:
					counts["asked by "+d.key()]++
				}
			}
		}
		if len(counts) != 2 || counts["said by "+ear.key()] < 100 || counts["asked by "+ear.key()] == 0 {
			s.Errorf("on network %s of %s was heard what was %v", ear.network, ear.key(), counts)
		}
		s.Logf("network %s of %s: %v", ear.network, ear.key(), counts)
	}
}

func unhex(text string) []byte {
	var b []byte
	_, _ = fmt.Sscanf(text, "%x", &b)
	return b
}

// twinReach: which addresses can be reached from where.
func twinReach(s *site, all []double) {
	outside(s.T, "it-beyond", "10.99.124")
	beyond := exec.Command("ip", "netns", "exec", "it-beyond", "python3", "-c",
		strings.ReplaceAll(tell, `open("/run/mark", "rb").read()`, `b"beyond"`))
	beyond.Args[len(beyond.Args)-1] = strings.ReplaceAll(beyond.Args[len(beyond.Args)-1], "/run/count", "/dev/null")
	wait, err := begin(beyond)
	must(s.T, err)
	s.Cleanup(func() { _ = beyond.Process.Kill(); _ = wait() })
	host, err := net.Listen("tcp", ":0")
	must(s.T, err)
	s.Cleanup(func() { host.Close() })
	go func() {
		for {
			c, err := host.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "host")
			c.Close()
		}
	}()
	other := newSite(s.T, "it-twin-other",
		"[network.lan]\nsubnet = \"10.99.118.0/24\"\ngateway = \"10.99.118.1\"\nnat = true\n[image.debian]\nsuite = \"bookworm\"\n[node.far]\nid = 11\n",
		nil)
	other.do("up")
	other.sh("far", "nc -V >/dev/null 2>&1; systemd-run --quiet python3 -m http.server 7000")
	port := fmt.Sprint(host.Addr().(*net.TCPAddr).Port)
	for _, d := range all {
		home, out := "-", "-"
		if d.twin == "" {
			home = "host"
		}
		if d.twin != "dev1" {
			out = "beyond"
		}
		s.eventually(func() error { // until the outside machines listen
			if who := d.asks("front", "10.99.124.2:7000")["10.99.124.2:7000"]; who != out {
				return fmt.Errorf("beyond the host of %s answers %s, want %s", d.key(), who, out)
			}
			return nil
		})
		d.wantAnswers("front", map[string]string{
			"10.99.116.12:7000": d.mark, "10.99.117.12:7000": d.mark, "10.99.116.13:7000": d.mark, // its own, at each address
			"10.99.118.11:7000": "-", "10.99.118.1:" + port: "-", // another site
			"10.99.116.1:" + port: home, s.world() + ":" + port: home, "10.99.124.1:" + port: home,
		})
		d.wantAnswers("dish", map[string]string{"10.99.116.11:7000": d.mark, "10.99.117.11:7000": "-",
			"10.99.118.11:7000": "-"})
	}
	for address, want := range map[string]string{"10.99.116.11:7000": all[0].mark, "10.99.117.11:7000": ""} {
		if got := ask(address); got != want {
			s.Errorf("from the host: at %s answers %q, want %q", address, got, want)
		}
	}
}

// ask returns which server answers the host at an address, or "" if none does.
func ask(address string) string {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	_ = c.(*net.TCPConn).CloseWrite()
	text, _ := io.ReadAll(c)
	return string(text)
}

// twinVolumes: a twin has a copy of production's data, and neither sees what the other writes.
func twinVolumes(s *site, all []double) {
	original, empty, snapshot := all[0], all[1], all[2]
	if got := snapshot.sh("store", "cat /srv/data/rows"); got != "before" {
		s.Errorf("the snapshot has %q", got)
	}
	if got := empty.sh("store", "ls -A /srv/data"); got != "" {
		s.Errorf("an empty volume has %q", got)
	}
	original.sh("store", "echo after >> /srv/data/rows")
	snapshot.sh("store", "echo twin >> /srv/data/rows")
	for d, want := range map[double]string{original: "before\nafter", snapshot: "before\ntwin"} {
		if got := d.sh("store", "cat /srv/data/rows"); got != want {
			s.Errorf("the volume of %s has %q, want %q", d.key(), got, want)
		}
	}
}

// twinOptions: only some nodes, lower limits, another release, and volumes that a script fills.
func twinOptions(s *site, _ []double) {
	s.write("fill.sh", "#!/bin/sh\necho \"$1 of $2\" > \"$3/rows\"\n")
	must(s.T, os.Chmod(filepath.Join(s.dir, "fill.sh"), 0o755))
	part := double{s, "part", "0ddba11e"}
	s.do("twin", "create", s.dir, "part", "--only", "front", "--only", "store", "--scale", "cpus=0.5,memory=0.5",
		"--release", "7",
		"--volumes", filepath.Join(s.dir, "fill.sh"), "--owner", "alice")
	part.sign()
	part.whole()
	part.run("status").want(0, `front +7011 .*7 .*healthy`, `store +7012 `)
	if out := part.do("status"); strings.Contains(out, "dish") {
		s.Errorf("it has more nodes than two\n%s", out)
	}
	if got := part.sh("front", "cat /etc/edition"); got != "second" {
		s.Errorf("release 7 is %q", got)
	}
	if got := s.sh("front", "cat /etc/edition"); got != "first" {
		s.Errorf("production is %q", got)
	}
	if got := part.sh("store", "cat /srv/data/rows"); got != "data of store" {
		s.Errorf("the script filled in %q", got)
	}
	part.as().wantLimits("front", 7011, map[string][2]string{
		"memory": {"memory.limit_in_bytes=67108864", "memory.max=67108864"},
		"cpu":    {"cpu.cfs_quota_us=25000", "cpu.max=25000 100000"},
	})
	s.wantLimits("front", 11, map[string][2]string{
		"memory": {"memory.limit_in_bytes=134217728", "memory.max=134217728"},
		"cpu":    {"cpu.cfs_quota_us=50000", "cpu.max=50000 100000"},
	})
	// no dish, though other twins have one
	part.wantAnswers("front", map[string]string{"10.99.116.12:7000": part.mark, "10.99.116.13:7000": "-"})
}

// twinOwner: other users cannot change a user's twin, unless they insist.
func twinOwner(s *site, _ []double) {
	by := func(user string) *site {
		they := *s
		they.env = append(slices.Clone(s.env), "SUDO_USER="+user)
		return &they
	}
	for _, args := range [][]string{
		{"twin", "destroy", "part"}, {"--twin", "part", "up"}, {"--twin", "part", "stop"}, {"--twin", "part", "start"},
		{"--twin", "part", "down"},
		{"--twin", "part", "snapshot", "all"},
	} {
		by("bob").run(args...).want(9, "twin part belongs to alice; nothing was done", "--force")
	}
	by("bob").run("--twin", "part", "status").want(0, "front .*running +(was )?healthy")
	by("alice").run("--twin", "part", "stop", "store").want(0)
	by("alice").run("--twin", "part", "stop", "store").want(0, `it-twin\.part: nothing to do: all selected nodes are stopped`)
	by("bob").run("--twin", "part", "status").want(11)
	by("bob").run("--force", "--twin", "part", "start").want(0)
	by("bob").run("twin", "ls").want(0, `part +it-twin +alice +2 of 2 run +7 `, `dev1 +it-twin +root +4 of 4 run +none `)
	by("bob").run("--force", "twin", "destroy", "part").want(0, "Twin part of it-twin is gone")
	double{s, "part", ""}.as().wantNoTrace()
}

// twinCollapse: all roles on one node, which has the names of all.
func twinCollapse(s *site, _ []double) {
	toy := double{s, "toy", "c0ffee11"}
	s.run("twin", "create", s.dir, "toy", "--collapse").want(0)
	toy.sign()
	toy.whole()
	if n := strings.Count(toy.do("query", "all"), "\n"); n != 1 {
		s.Errorf("it has %d nodes", n)
	}
	for _, name := range []string{"front", "store", "dish", "gauge", "gauge.it-twin"} {
		if got := toy.sh("front", "getent ahostsv4 "+name+" | head -1 | cut -d' ' -f1"); !strings.HasPrefix(got,
			"10.99.11") || !strings.HasSuffix(got, ".11") {
			s.Errorf("%s is at %q", name, got)
		}
	}
	if got := toy.sh("front", "cat /etc/edition /etc/dish /etc/gauge; ls -d /srv/data"); got != "first\nsimulated\nsimulated\n/srv/data" {
		s.Errorf("it has %q", got)
	}
	s.run("twin", "destroy", "toy").want(0)
	toy.as().wantNoTrace()
}

// twinVerbs: every command works on a twin, and its own commands work like --twin.
func twinVerbs(s *site, all []double) {
	dev1 := all[1]
	s.run("twin", "status", "dev1").want(0, "front .*running +(was )?healthy")
	s.run("twin", "shell", "dev1", "front", "--", "cat", "/run/mark").want(0, dev1.mark)
	s.run("twin", "exec", "dev1", "all", "--", "cat", "/run/mark").want(0, "4 of 4 nodes succeeded", dev1.mark)
	s.run("twin", "exec", "dev1", "all", "--", "false").want(104)
	dev1.run("plan").want(0)
	dev1.run("up").want(0, "nothing to do")
	dev1.do("stop", "dish")
	dev1.run("status", "dish").want(11, "stopped")
	dev1.do("start", "dish")
	dev1.run("down", "gauge").want(0)
	dev1.run("plan").want(10, "create")
	dev1.do("up")
	dev1.sign()
	dev1.run("query", "role=dish").want(0, "dish")
	s.write("carried", "carried")
	dev1.do("cp", filepath.Join(s.dir, "carried"), "front:/run/carried")
	if got := dev1.sh("front", "cat /run/carried"); got != "carried" {
		s.Errorf("cp brought %q", got)
	}
	if s.run("shell", "front", "--", "test", "-e", "/run/carried").status == 0 {
		s.Error("cp to a twin wrote to production")
	}
	dev1.run("logs", "front", "tell.service").want(0, "tell.service")
	dev1.run("journal").want(0, "root: orrery .*--twin dev1 down gauge")
	if out := s.do("journal"); strings.Contains(out, "--twin dev1 down gauge") || !strings.Contains(out, "twin create") {
		s.Errorf("the journal of production is\n%s", out)
	}
	twinForward(s, dev1)
	var rows []struct{ Options struct{ Name, Owner string } }
	must(s.T, json.Unmarshal(replied(s.do("twin", "ls", "--json")), &rows))
	var names []string
	for _, r := range rows {
		if r.Options.Name == "dev1" || r.Options.Name == "dev2" {
			names = append(names, r.Options.Name+" of "+r.Options.Owner)
		}
	}
	if !slices.Equal(names, []string{"dev1 of root", "dev2 of root"}) {
		s.Errorf("there are %v", names)
	}
}

// twinForward: a port of a twin on this host's loopback.
func twinForward(s *site, dev1 double) {
	cmd, _, errs := s.command("twin", "forward", dev1.twin, "front:7000", "--listen", "127.0.0.1:0")
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	must(s.T, err)
	wait, err := begin(cmd)
	must(s.T, err)
	line := make([]byte, 100)
	n, _ := out.Read(line)
	address, _, _ := strings.Cut(strings.TrimPrefix(string(line[:n]), "http://"), "/")
	if got := ask(address); got != dev1.mark {
		s.Errorf("at %s answers %q, want %q\n%s", address, got, dev1.mark, errs)
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = wait()
}

// twinReleases: releases are staged, switched and rolled back inside a twin as in production,
// without an effect outside.
func twinReleases(s *site, all []double) {
	dev1 := all[1]
	edition := func(want string) {
		s.Helper()
		if got := dev1.sh("front", "cat /etc/edition"); got != want {
			s.Errorf("the twin's edition is %q, want %q", got, want)
		}
		if got := s.sh("front", "cat /etc/edition"); got != "first" {
			s.Errorf("production's edition is %q", got)
		}
	}
	dev1.run("stage", "front", "--release", "7").want(0, `front +7011 .*7 \(quarantine\)`)
	edition("first")
	dev1.run("switch", "front", "--release", "7").want(0)
	edition("second")
	dev1.run("status").want(0)
	dev1.do("rollback")
	edition("first")
	dev1.run("status").want(0)
	s.run("release", "ls").want(0, "7 +declared")
	for _, path := range glob(s.dirs.Nodes(s.name) + "/7*") {
		s.Errorf("production has %s", path)
	}
}

// twinMistakes: impossible requests are reported with a cure, and nothing is made.
func twinMistakes(s *site, _ []double) {
	s.run("--twin", "dve1", "status").want(3, "no twin", "did you mean dev1?")
	s.run("twin", "status", "dve1").want(3, "did you mean dev1?")
	s.run("twin", "destroy", "dev3").want(3, "no twin")
	s.run("twin", "crate", s.dir, "x").want(2, "did you mean create?")
	for _, name := range []string{"701", "Dev", "a.b", "../up", "", strings.Repeat("x", 21)} {
		s.run("twin", "create", s.dir, name).want(2, "is not valid")
	}
	s.run("twin", "create", s.dir, "dev1").
		want(3, "already has a twin dev1, which belongs to root", "orrery --twin dev1 up")
	s.run("twin", "create", "nowhere", "x1").want(2, "neither a site directory nor a site that is up on this host")
	s.run("twin", "create", s.dir).want(2)
	s.run("twin", "create", s.dir, "x1", "--only", "dsh").want(2, "dish")
	s.run("twin", "create", s.dir, "x1", "--scale", "cpus=half").want(2, "cpus=0.5")
	s.run("twin", "create", s.dir, "x1", "--release", "8").want(3, "release 8")
	s.run("twin", "create", s.dir, "x1", "--volumes", "snaphsot").want(2)
	broken := s.T.TempDir()
	must(s.T, os.CopyFS(broken, os.DirFS(s.dir)))
	text, err := os.ReadFile(filepath.Join(broken, "site.toml"))
	must(s.T, err)
	must(s.T, os.WriteFile(filepath.Join(broken, "site.toml"),
		append(text, "[node.more]\nid = 15\nroles = [\"dsih\"]\n"...), 0o644))
	s.run("twin", "create", broken, "x1").want(3, `site.toml:\d+: .*dsih`)
	if left := glob(s.dirs.Site(s.name + ".x*")); len(left) > 0 {
		s.Errorf("left are %v", left)
	}
}

// An expiring twin is destroyed on its own, whatever is done to others meanwhile.
type expiring struct {
	double
	began time.Time
}

func (d *expiring) create(s *site, _ []double) {
	d.site, d.began = s, time.Now()
	s.do("twin", "create", s.dir, d.twin, "--only", "store", "--expires", "20s")
	d.run("status").want(0)
	s.run("twin", "ls").want(0, `brief +it-twin +root +1 of 1 run +none +\S+ \S+ +20\d\d-`)
}

func (d *expiring) expires(s *site, _ []double) {
	d.site = s
	s.eventually(func() error {
		if _, err := os.Stat(s.dirs.Site(d.key())); err == nil {
			return fmt.Errorf("it is still there")
		}
		return nil
	})
	if took := time.Since(d.began); took < 19*time.Second {
		s.Errorf("it was gone after %s already", took)
	}
	d.as().wantNoTrace()
}

// twinKilled: a twin whose creation was interrupted can be started or destroyed.
func twinKilled(s *site, _ []double) {
	random := seed(s.T)
	cut := double{s, "cut", ""}
	create := []string{"twin", "create", s.dir, "cut", "--only", "front", "--only", "store", "--volumes", "snapshot",
		"--nat"}
	span := s.run(create...).want(0).took
	s.do("twin", "destroy", "cut")
	killed := 0
	for range 10 {
		if s.killed(time.Duration(random.Float64()*float64(span)), create...) {
			killed++
		}
		if _, err := os.Stat(filepath.Join(s.dirs.Site(cut.key()), "twin.json")); err != nil {
			s.run("twin", "destroy", "cut").want(3, "no twin")
			continue // nothing was made yet
		}
		if random.IntN(2) == 0 {
			if r := cut.run("up"); r.status == 6 { // what was starting when it was killed has just started
				cut.do("up")
			} else {
				r.want(0)
			}
			cut.whole()
			if got := cut.sh("store", "cat /srv/data/rows"); !strings.HasPrefix(got, "before") {
				s.Errorf("its volume has %q", got)
			}
		}
		s.do("twin", "destroy", "cut")
		cut.as().wantNoTrace()
		if _, err := os.Stat(s.dirs.Site(cut.key())); err == nil {
			s.Error("its directory is still there")
		}
		if s.Failed() {
			return
		}
	}
	s.Logf("killed %d of 10 within %s", killed, span)
}

// twinEnd: production is destroyed without its twins, and the twins without a trace.
func twinEnd(s *site, dev1, dev2 double) {
	s.do("down")
	dev1.whole()
	dev2.run("status", "--probe").want(0)
	dev2.wantAnswers("front", map[string]string{"10.99.116.12:7000": dev2.mark})
	for _, d := range []double{dev1, dev2} {
		s.run("twin", "destroy", d.twin).want(0, "is gone")
		d.as().wantNoTrace()
	}
	left := glob(s.dirs.Site(s.name+".*"), filepath.Join(s.dirs.Run, "sites", s.name+".*"),
		filepath.Join(s.dirs.Run, "later", "*-"+s.name+".*"))
	if left = append(left, routers(s.name)...); len(left) > 0 {
		s.Errorf("left are %v", left)
	}
	if out, _ := sh("ip -o link | grep -F 'orrery it-twin.'"); out != "" {
		s.Errorf("left are the links\n%s", out)
	}
	if out, _ := sh("pgrep -af 'it-twin[.]'"); out != "" {
		s.Errorf("left are the processes\n%s", out)
	}
}
