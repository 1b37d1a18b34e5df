package test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/test/hosts"
	"orrery/test/need"
)

const (
	farChaosVerbs = 5 // per history
	farChaosHosts = 3
)

// TestFarChaos: a site is controlled from any of its hosts, and faults happen to the hosts
// meanwhile. The control host or a helper is killed, a link is cut in one or both directions, or a
// host freezes, has a slow disk, loses power, or finds its clock changed. No address and no
// exclusive volume ever has two holders. The next up brings the site to its declared state, and
// down leaves nothing behind. A run is reproduced by its seed:
//
//	ORRERY_FARCHAOS_SEED=17 make test-chaos       # the same commands and faults; fault times depend on the machine
func TestFarChaos(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	many, one := os.Getenv("ORRERY_FARCHAOS_RUNS"), os.Getenv("ORRERY_FARCHAOS_SEED")
	var first, runs uint64
	switch {
	case one != "":
		first, runs = number64(t, one), 1
	case many != "":
		first, runs = uint64(time.Now().UnixNano()/1e6), number64(t, many)
	default:
		first, runs = 1, 2 // a history takes about five seconds; make test-chaos has more
	}
	s := newExample(t, "minimal", "it-farchaosbase", "10.77.1.", "10.99.236.")
	s.do("image", "build") // hosts cannot reach package archives
	path, err := clocked()
	if err != nil {
		t.Fatal(err)
	}
	h := hosts.Up(t, hosts.Options{Count: farChaosHosts, Programs: map[string]string{"orrery": path},
		Store: filepath.Join(need.State(), "store")})
	ended := map[string]int{}
	t.Run("planted", func(t *testing.T) { planted(t, []hosts.Host{h.At(1), h.At(2)}) })
	for seed := first; seed < first+runs && !t.Failed(); seed++ {
		c := &farChaos{site: s, random: rand.New(rand.NewPCG(seed, 0)), home: 2, ended: ended}
		for i := 1; i <= farChaosHosts; i++ {
			c.hosts = append(c.hosts, h.At(i))
		}
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { c.history(t) })
	}
	t.Logf("from seed %d, %d histories; of verbs, how they ended and how often:\n%s", first, runs,
		tally([]*chaosWorld{{ended: ended}}))
}

// A farChaos is one history of a site on several hosts.
type farChaos struct {
	*site
	t      *testing.T
	hosts  []hosts.Host
	random *rand.Rand
	home   int // host of node c
	clocks bool
	said   []string
	ended  map[string]int
}

const farChaosName = "it-farchaos"

// write hands every host the site directory, in which that host is the local one.
func (c *farChaos) write() {
	for at := range c.hosts {
		var b strings.Builder
		fmt.Fprintf(&b, "site.name = %q\nimage.debian.suite = \"bookworm\"\n[network.lan]\nsubnet = \"10.99.236.0/24\"\ngateway = \"10.99.236.1\"\n[release.701]\n[release.702]\n",
			farChaosName)
		for i, h := range c.hosts {
			address := h.Address()
			if i == at {
				address = "local"
			}
			fmt.Fprintf(&b, "[host.%s]\naddress = %q\nunderlay = %q\n", h.Name(), address, h.Address())
		}
		for i, node := range []string{"a", "b", "c"} {
			fmt.Fprintf(&b, "[node.%s]\nid = %d\nmemory = \"256MiB\"\nroles = [\"keeper\"]\n", node, 11+i)
			if home := []int{1, 0, c.home}[i]; home > 0 { // node b is on any host, and moves
				fmt.Fprintf(&b, "host = \"sv%d\"\n", home)
			}
		}
		dir := filepath.Join(c.dir, "chaos")
		for name, text := range map[string]string{
			"site.toml":              b.String(),
			"roles/keeper/role.toml": "[[volume]]\nname = \"data\"\npath = \"/srv/data\"\n[[health]]\ncommand = [\"test\", \"-d\", \"/srv/data\"]\n",
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				c.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				c.Fatal(err)
			}
		}
		(&site{T: c.t, dir: dir}).carry(c.hosts[at], "/root/chaos")
	}
}

// history runs some commands with faults, and then the checks that must hold after any of them.
func (c *farChaos) history(t *testing.T) {
	own := *c.site
	own.T, c.t, c.site = t, t, &own
	t.Cleanup(func() {
		if t.Failed() || testing.Verbose() {
			t.Logf("What was done:\n  %s\nThe same again: ORRERY_FARCHAOS_SEED=%s make test-chaos",
				strings.Join(c.said, "\n  "), filepath.Base(t.Name()))
		}
	})
	c.write()
	watch := watchHolders(c.t, farChaosName, "lan", []string{"a", "b", "c"}, []int{0, 701, 702}, c.hosts).begin()
	defer watch.end()
	c.steer(1, "up")
	for range farChaosVerbs {
		c.act()
	}
	c.heal()
	c.converge("up")
	for i := range c.hosts {
		if r := c.steer(i+1, "plan"); r.status != 0 || !strings.Contains(r.out, "nothing to do") {
			c.Errorf("sv%d plans after up: %s%s", i+1, r.out, r.errs)
		}
	}
	for i, h := range c.hosts {
		if _, err := h.Output("test", "-e", "/root/backups/backups"); err != nil {
			continue // no snapshot was taken there
		}
		if r := c.steer(i+1, "backup", "verify", "/root/backups"); r.status != 0 {
			c.Errorf("backups on %s: %s%s", h.Name(), r.out, r.errs)
		}
		if _, err := h.Output("rm", "-rf", "/root/backups"); err != nil {
			c.Error(err)
		}
	}
	if r := c.steer(1, "exec", "all", "--", "ping", "-c1", "-W5", "10.99.236.13"); r.status != 0 {
		c.Errorf("nodes do not reach one another: %s%s", r.out, r.errs)
	}
	c.converge("down", "--volumes", "--yes-volumes", farChaosName)
	for _, h := range c.hosts {
		const traces = `ip -br link | grep -E "orb|orv|orx"; cd /var/lib/orrery/sites/` + farChaosName +
			`; ls -A nodes; ls -dA arrivals/* volumes/*/* 2>/dev/null; nft list tables | grep orrery; grep orrery/sites /proc/mounts | grep -v "^tmpfs /run"; pgrep -a lxc-start; true`
		if out, err := h.Output("/bin/sh", "-c", traces); err != nil || out != "" {
			c.Errorf("left on %s is %s (%v)", h.Name(), out, err)
		}
		if _, err := h.Output("rm", "-rf", "/var/lib/orrery/sites/"+farChaosName); err != nil {
			c.Error(err)
		}
	}
}

// act runs a command with a fault.
func (c *farChaos) act() {
	c.Helper()
	control := 1 + c.random.IntN(len(c.hosts))
	release := []string{"701", "702"}[c.random.IntN(2)]
	verb := [][]string{{"up"}, {"up"}, {"down"}, {"stage", "--release", release}, {"switch", "--release", release},
		{"rollback"}, {"stop", "b"}, {"snapshot"}, {"rehome"}, {"up", "--without"}, {"move", "b"}, {"move", "b"},
		{"backup", "/root/backups/"}}[c.random.IntN(13)]
	if verb[0] == "move" {
		verb = append(verb, "--to", c.hosts[c.random.IntN(len(c.hosts))].Name())
	} else if verb[0] == "switch" && c.random.IntN(4) > 0 { // otherwise there is seldom a release to switch to
		c.steer(control, "up")
		c.steer(control, "stage", "--release", release)
	} else if verb[0] == "rehome" {
		c.home = 5 - c.home
		c.write()
		verb = []string{"up"}
	} else if verb[len(verb)-1] == "--without" {
		verb = append(verb, c.hosts[control%len(c.hosts)].Name())
	}
	c.befall(control, verb)
}

// befall injects a fault on a host during a command.
func (c *farChaos) befall(control int, verb []string) {
	c.Helper()
	at := time.Duration(c.random.Float64() * float64(time.Second))
	lasts := time.Duration(c.random.Float64() * float64(4*time.Second))
	victim := c.hosts[c.random.IntN(len(c.hosts))]
	far := c.hosts[(control+c.random.IntN(len(c.hosts)-1))%len(c.hosts)]
	fault, strike, mend := "", func() error { return nil }, func() error { return nil }
	quiet := func(script string) func() error {
		return func() error { _, err := far.Output("/bin/sh", "-c", script+"; true"); return err }
	}
	killed := false
	switch c.random.IntN(9) {
	case 0:
		fault, killed = "control point killed", true
	case 1:
		fault, victim = "helper killed", far
		strike = quiet("pkill -9 -f [h]ost-helper") // of this host, since it has its own process namespace
	case 2, 3, 4:
		way := []hosts.Way{hosts.Both, hosts.To, hosts.From}[c.random.IntN(3)]
		fault, strike, mend = "link cut: "+string(way), func() error { return victim.Disconnect(way) }, victim.Reconnect
	case 5:
		victim = far
		fault, strike, mend = "host paused", far.Pause, far.Resume
	case 6:
		fault, strike, mend = "disk slow", func() error { return victim.SetDiskRate(200_000) },
			func() error { return victim.SetDiskRate(0) }
		at = 0
	case 7:
		victim = far
		jump := []int{3600, -3600, 40 * 86400}[c.random.IntN(3)]
		fault, strike = fmt.Sprintf("clock set by %d s", jump),
			func() error { c.clocks = true; return far.SetEnv("ORRERY_TEST_CLOCK=" + strconv.Itoa(jump)) }
		at = 0
	case 8:
		victim = far
		fault, strike, mend = "power lost", far.Kill, far.Boot
	}
	done := make(chan struct{})
	cmd := c.hosts[control-1].Command(append([]string{"orrery", "-C", "/root/chaos"}, verb...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	if at == 0 {
		c.must(strike())
	}
	c.must(cmd.Start())
	go func() { _ = cmd.Wait(); close(done) }()
	if at > 0 {
		select {
		case <-done:
			fault += ", too late"
			mend = func() error { return nil }
		case <-time.After(at):
			if killed {
				c.must(c.killControl(control))
			} else {
				c.must(strike())
			}
		}
	}
	over := make(chan error, 1)
	go func() {
		select {
		case <-done:
		case <-time.After(lasts):
		}
		over <- mend()
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		c.Errorf("%v does not end, since %s of %s", verb, fault, victim.Name())
		_ = cmd.Process.Signal(syscall.SIGKILL)
		<-done
	}
	c.must(<-over)
	code := cmd.ProcessState.ExitCode()
	said := fmt.Sprintf("sv%d: %s: %s (%s, after %s for %s): status %d", control, strings.Join(verb, " "), fault,
		victim.Name(), at.Round(time.Millisecond), lasts.Round(time.Millisecond), code)
	c.said = append(c.said, fmt.Sprintf("%s after %s\n%s", said, time.Since(began).Round(time.Millisecond),
		indented(errs.String())))
	c.ended[fmt.Sprintf("%s: %s: status %d", verb[0], fault, code)]++
	if verb[0] == "stage" {
		c.share(control)
	}
	if text := errs.String(); code == 2 || strings.Contains(text, "goroutine ") || code > 0 &&
		strings.TrimSpace(text) == "" {
		c.Errorf("%s\n%s", said, text)
	}
}

func indented(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}

// share copies releases.lock to the other control hosts, as version control does.
func (c *farChaos) share(from int) {
	c.Helper()
	const lock = "/root/chaos/releases.lock"
	if _, err := c.hosts[from-1].Output("test", "-e", lock); err != nil {
		return // nothing was staged
	}
	for i, h := range c.hosts {
		if i != from-1 {
			(&site{T: c.t}).share("releases.lock", c.hosts[from-1], h, "/root/chaos")
		}
	}
}

// killControl kills the control processes on a host, but not helpers. The host has its own
// processes.
func (c *farChaos) killControl(on int) error {
	_, err := c.hosts[on-1].Output("/bin/sh", "-c",
		"for p in $(pgrep -x orrery); do grep -q host-helper /proc/$p/cmdline || kill -9 $p; done; true")
	return err
}

func (c *farChaos) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// heal ends all faults of hosts.
func (c *farChaos) heal() {
	for _, h := range c.hosts {
		if c.clocks {
			c.must(h.SetEnv())
		}
		if _, err := h.Init(); err != nil {
			c.must(h.Boot())
		}
		c.must(h.Reconnect())
	}
	c.clocks = false
}

// steer runs a command on a host.
func (c *farChaos) steer(on int, args ...string) result {
	c.Helper()
	cmd := c.hosts[on-1].Command(append([]string{"orrery", "-C", "/root/chaos"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	_ = cmd.Run()
	r := result{c.site, args, cmd.ProcessState.ExitCode(), out.String(), errs.String(), time.Since(began)}
	c.said = append(c.said, fmt.Sprintf("sv%d: %s: status %d after %s\n%s", on, strings.Join(args, " "), r.status,
		r.took.Round(time.Millisecond), indented(r.errs)))
	if args[0] == "stage" {
		c.share(on)
	}
	return r
}

// converge runs a command until it succeeds, since a killed process may still be releasing its
// locks.
func (c *farChaos) converge(args ...string) {
	c.Helper()
	var r result
	for range 20 {
		if r = c.steer(1+c.random.IntN(len(c.hosts)), args...); r.status == 0 {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	c.Errorf("%v does not succeed any more: status %d\n%s%s", args, r.status, r.out, r.errs)
}
