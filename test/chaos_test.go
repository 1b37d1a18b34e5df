package test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"orrery/internal/problem"
	"orrery/test/need"
)

const (
	// chaosRuns is the default number of histories. make test-chaos sets more. On a busy machine,
	// there are only as many as begin in chaosTime.
	chaosRuns = 30
	chaosTime = 3 * time.Minute
	// chaosLanes is how many histories run in parallel, each on its own disk. Half of the time of a
	// history is waiting.
	chaosLanes = 2
)

// TestChaos: whatever is done to a site in any order, and whatever happens meanwhile, the next up
// brings the site up completely. A command may be killed or interrupted, lack disk space or a
// program, or find the clock changed, and the host may reboot. No written line is lost, down leaves
// nothing behind, and failures report the cause and the cure. A run is reproduced by its seed:
//
//	ORRERY_CHAOS_SEED=17 make test-chaos       # the same commands and mishaps; kill times depend on the machine
func TestChaos(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	first, runs, most := uint64(1), uint64(chaosRuns), chaosTime // the same each time: what fails is what has changed
	if text := os.Getenv("ORRERY_CHAOS_RUNS"); text != "" {
		first, runs, most = uint64(time.Now().UnixNano()/1e6), number64(t, text), 24*time.Hour
	}
	if text := os.Getenv("ORRERY_CHAOS_SEED"); text != "" {
		first, runs = number64(t, text), 1
	}
	base := newSite(t, "it-chaosbase", fmt.Sprintf(failingSite, 145),
		files{"roles/worker/role.toml": "description = \"none\"\n"}).base()
	go clocked() //nolint:errcheck // whoever needs it is told
	var worlds []*chaosWorld
	for lane := range min(chaosLanes, int(runs)) {
		worlds = append(worlds, &chaosWorld{lane: lane, chaosDisk: newChaosDisk(t, lane, base),
			spans: map[string]time.Duration{}, ended: map[string]int{}})
	}
	began, done, failed := time.Now(), atomic.Uint64{}, atomic.Int32{}
	// The lanes are not parallel tests. Those would wait for other tests to end, while the time for
	// histories passes.
	var lanes sync.WaitGroup
	for _, w := range worlds {
		lanes.Go(func() {
			for time.Since(began) < most && failed.Load() < 5 {
				n := done.Add(1)
				if n > runs {
					break
				}
				at := first + n - 1
				if !t.Run(strconv.FormatUint(at, 10), func(t *testing.T) { w.history(t, at) }) && failed.Add(1) == 5 {
					t.Errorf("no more than %d histories are tried after so many have failed", n)
				}
			}
		})
	}
	lanes.Wait()
	t.Logf("%d histories in %s; of verbs, how they ended and how often:\n%s", min(done.Load(), runs),
		time.Since(began).Round(time.Second), tally(worlds))
}

func number64(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A chaosWorld is shared by the histories of a lane: a disk small enough to be filled, and counts
// of how commands ended.
type chaosWorld struct {
	*chaosDisk
	lane  int
	spans map[string]time.Duration
	ended map[string]int // how commands ended, by command, mishap and exit status
}

// tally logs what was done and how it ended.
func tally(worlds []*chaosWorld) string {
	all := map[string]int{}
	for _, w := range worlds {
		for what, n := range w.ended {
			all[what] += n
		}
	}
	var lines []string
	for what, n := range all {
		lines = append(lines, fmt.Sprintf("%6d × %s", n, what))
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(a[7:], b[7:]) })
	return strings.Join(lines, "\n")
}

// A chaos is one history of a site.
type chaos struct {
	*site
	*chaosWorld
	random  *rand.Rand
	said    []string // what was done, printed when the test fails
	clock   time.Duration
	edition int
	now     chaosData
	kept    map[string][]string // lines of the ledger in snapshots and backups, by the command that restores them
}

// history runs one history: some commands with mishaps, and then the checks that must hold after
// any of them.
func (w *chaosWorld) history(t *testing.T, seed uint64) {
	s := newReleased(t, fmt.Sprintf("it-chaos%d", w.lane), []int{144, 147}[w.lane])
	s.keepIn(w.home)
	c := &chaos{site: s, chaosWorld: w, random: rand.New(rand.NewPCG(seed, 0)), kept: map[string][]string{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("What was done:\n  %s\nThe same again: ORRERY_CHAOS_SEED=%d make test-chaos", strings.Join(c.said, "\n  "),
				seed)
		}
	})
	c.populateChaos()
	c.spans["up"] = max(c.spans["up"], c.whole("up").took)
	for _, n := range []string{"701", "702"}[:c.random.IntN(3)] { // so that a rollback is possible
		c.whole("stage", "--release", n)
		c.spans["switch"] = c.whole("switch", "--release", n).took
	}
	c.now.read(c)
	for range 3 + c.random.IntN(4) {
		c.act()
		if t.Failed() {
			return
		}
	}
	c.mended()
	c.gone()
}

// populateChaos makes the site directory: three nodes, three releases and a template file.
func (c *chaos) populateChaos() {
	c.edit("site.toml", "[release.701]\n", "[release.702]\n[release.703]\n[release.701]\n")
	c.write("roles/ledger/role.toml", strings.Replace(ledger["roles/ledger/role.toml"], "[[volume]]",
		"[[file]]\npath = \"/etc/edition\"\ntemplate = \"edition.tmpl\"\n[[volume]]", 1))
	c.write("roles/ledger/ledger.py", patientLedger)
	c.write("roles/ledger/edition.tmpl", "0\n")
	c.write("roles/greeter/greeter.py", greeterSays("one"))
}

// patientLedger is a ledger that tolerates a full disk for a while.
const patientLedger = `
import os, time
me = os.urandom(8).hex()
with open("/srv/data/ledger", "a+b", buffering=0) as f:
    f.seek(0)
    text = f.read()
    whole = text.rfind(b"\n") + 1
    n = text.count(b"\n")
    os.ftruncate(f.fileno(), whole)
    while True:
        line = b"%d %s\n" % (n + 1, me.encode())
        try:
            if f.write(line) != len(line):
                raise OSError("half a line")
            os.fsync(f.fileno())
            n += 1
            whole += len(line)
        except OSError:
            os.ftruncate(f.fileno(), whole)
        time.sleep(0.02)
`

// whole runs the program without any mishap, and requires success.
func (c *chaos) whole(args ...string) result {
	c.Helper()
	r := c.alone(args...)
	if r.status == 0 {
		return r
	}
	c.Fatalf("orrery %s: exit status %d\n%s%s", strings.Join(args, " "), r.status, r.out, r.errs)
	return r
}

// alone runs the program, and again while the host itself is at work, such as at the end of a trial.
func (c *chaos) alone(args ...string) (r result) {
	c.Helper()
	for range 20 {
		r = c.run(args...)
		c.tell(args, "", r.status)
		if r.status != int(problem.Locked) || !strings.Contains(r.errs, "host-run") {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	return r
}

// tell records what was done.
func (c *chaos) tell(args []string, mishap string, status int) {
	text := "orrery " + strings.ReplaceAll(strings.Join(args, " "), c.dir, "SITE")
	if mishap != "" {
		text += ", " + mishap
	}
	c.said = append(c.said, fmt.Sprintf("%s: exit status %d", text, status))
	kind, _, _ := strings.Cut(mishap, ":")
	c.ended[fmt.Sprintf("%-9s %-12s status %d", args[0], cmp.Or(kind, "-"), status)]++
}

// mended checks that up alone brings the site up, or up after the commands that it suggests.
func (c *chaos) mended() {
	c.Helper()
	r := c.alone("up")
	if r.status != 0 && c.now.restoring != nil && strings.Contains(r.errs, "orrery restore") {
		c.whole(c.now.restoring...)
		r = c.run("up")
	}
	if r.status != 0 {
		c.Fatalf("up does not bring the site up: exit status %d\n%s%s", r.status, r.out, r.errs)
	}
	if c.trialEnds() {
		c.whole("up")
	}
	if r := c.run("plan"); r.status != 0 {
		c.Errorf("after up the plan is not empty: exit status %d\n%s%s", r.status, r.out, r.errs)
	}
	if r := c.run("status", "--probe"); r.status != 0 {
		c.Errorf("after up: exit status %d\n%s%s", r.status, r.out, r.errs)
	}
	whole, partly := c.onLive()
	for _, name := range []string{"web0", "web1", "store"} {
		if len(whole[name]) != 1 || len(partly[name]) > 0 {
			c.Errorf("node %s is on the live networks at releases %v, partly at %v", name, whole[name], partly[name])
		}
	}
	if all := c.writers("store"); len(all) != 1 {
		c.Errorf("the volume can be written by %v", all)
	}
	c.now.restoring = nil
	c.now.check(c)
	c.wantKept("store", c.now.lines)
}

// trialEnds waits for a trial that will end soon on its own, and reports whether there was one. A
// trial may go back at any moment, even between up and the following checks.
func (c *chaos) trialEnds() (trial bool) {
	c.Helper()
	for range 300 {
		r := c.run("status")
		if said := r.out + r.errs; !strings.Contains(said, "then it is confirmed or goes back") &&
			!strings.Contains(said, "is under way") {
			return trial
		}
		trial = true
		time.Sleep(100 * time.Millisecond)
	}
	c.Error("the trial does not end")
	return trial
}

// gone checks that nothing is left after the site and its twin are destroyed. The time of the twin
// may just be over, so gone waits for the process that destroys it.
func (c *chaos) gone() {
	c.Helper()
	if r := c.run("twin", "destroy", chaosTwin, "--wait"); r.status != 0 && r.status != 3 {
		c.Errorf("the twin cannot be destroyed: exit status %d\n%s%s", r.status, r.out, r.errs)
	}
	repository := filepath.Join(c.dirs.State, "backups")
	if len(glob(repository)) > 0 {
		c.whole("backup", repository)
		c.whole("backup", "verify", repository)
	}
	c.whole("down")
	twin := *c.site
	twin.name += "." + chaosTwin
	twin.wantNoTrace()
	c.wantNoTrace()
	c.wantUnwatched()
	kept := c.dirs.Site(c.name)
	left := glob(kept+".*", kept+"/restore", kept+"/restoring.json", kept+"/volumes/*/.*", kept+"/snapshots/.*",
		c.dirs.State+"/store/.staging/*", c.dirs.State+"/build/*", repository+"/.*", repository+"/*/.*",
		filepath.Join(c.dirs.Run, "later", "*"+c.name+"*"))
	if open := filepath.Join(kept, "restoring.json"); slices.Contains(left, open) {
		// A restore of a snapshot was not resumed. The user may want either state, so both are
		// kept.
		left = slices.DeleteFunc(left, func(path string) bool { return path == open || strings.HasSuffix(path, "-aside") })
	}
	if len(left) > 0 {
		c.Errorf("after down, left are %v", left)
	}
	if err := os.RemoveAll(repository); err != nil {
		c.Error(err)
	}
}

// chaosData is the expected ledger: the content read last, and the content that may replace it
// because a restore was started since.
type chaosData struct {
	lines     []string
	instead   [][]string
	restoring []string // the interrupted restore of a backup
}

// read takes the current content of the ledger as expected, if it can be read.
func (d *chaosData) read(c *chaos) {
	c.Helper()
	if _, err := os.Stat(filepath.Join(c.dirs.Volumes(c.name), "data", "store", "ledger")); err != nil {
		if len(d.lines) > 0 && len(d.instead) == 0 {
			c.Errorf("the ledger is gone: %v", err)
		}
		return
	}
	if len(d.instead) > 0 { // the current content may be any of them
		return
	}
	d.check(c)
}

// check verifies that the ledger continues from the expected content, or from the restored one.
func (d *chaosData) check(c *chaos) {
	c.Helper()
	now := c.lines("store")
	begins := func(with []string) bool { return len(now) >= len(with) && slices.Equal(now[:len(with)], with) }
	if !begins(d.lines) && !slices.ContainsFunc(d.instead, begins) {
		c.Errorf("the ledger has %d lines; lost is something of the %d that were there", len(now), len(d.lines))
	}
	d.lines, d.instead = now, nil
}
