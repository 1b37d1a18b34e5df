package test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/observe"
	"orrery/test/need"
)

// TestSwitchHistory: in random histories of several releases, a switch or a rollback is killed at
// any time, even a rollback to a numbered release. The next run converges on its own, even after a
// reboot of the host.
func TestSwitchHistory(t *testing.T) {
	t.Parallel()
	home := newHome(t, "history")
	s := newReleased(t, "it-history", 114)
	s.keepIn(home)
	random := seed(t)
	s.edit("site.toml", "[release.701]\n", "[release.702]\n[release.703]\n[release.701]\n")
	s.do("up")
	h := &history{site: s, random: random, releases: []int{701, 702, 703}}
	for _, n := range h.releases[:2] { // the first rollback returns to a numbered release
		h.do("stage", "--release", fmt.Sprint(n))
		h.span = h.run("switch", "--release", fmt.Sprint(n)).want(0).took
	}
	h.powerCut()
	for began := time.Now(); h.kills < need.Kills(12, 25) && time.Since(began) < 4*time.Minute && !t.Failed(); {
		h.step()
	}
	t.Logf("%d kills: %s", h.kills, strings.Join(h.done, ", "))
}

type history struct {
	*site
	random   *rand.Rand
	releases []int
	span     time.Duration // duration of a whole switch
	kills    int
	done     []string
}

// powerCut reboots the host when a rollback has just begun. The release that was live then is
// staged again.
func (h *history) powerCut() {
	h.Helper()
	for try := 1; !h.barelyBegun(); try++ { // on a busy machine a kill may come late
		if try == 10 {
			h.Fatal("no rollback was killed when it had just begun")
		}
		h.do("up")
		if h.live() != 702 {
			h.do("stage", "--release", "702")
			h.do("switch", "--release", "702")
		}
	}
	h.reboot()
	h.do("resume")
	h.do("stage", "--release", "702")
	h.wantQuiet()
}

// barelyBegun kills a rollback from release 702, and reports whether 702 is still recorded as live.
func (h *history) barelyBegun() bool {
	h.Helper()
	for after := 10 * time.Millisecond; !h.intended(); after += 5 * time.Millisecond {
		if !h.site.killed(after, "rollback") {
			return false
		}
	}
	return h.instances()["store"][702].Active
}

// live returns the release of all live nodes.
func (h *history) live() int {
	h.Helper()
	whole, _ := h.onLive()
	if at := whole["store"]; len(at) == 1 {
		return at[0]
	}
	return -1
}

// step runs, or starts and kills, a command that is possible with the existing releases.
func (h *history) step() {
	h.Helper()
	current := h.site.releases()
	var former bool
	var staged, free []int
	for _, n := range h.releases {
		r := current[n]
		former = former || r.Former
		switch {
		case len(r.Live) > 0 || r.Former:
		case len(r.Quarantine) == 3:
			staged = append(staged, n)
		default:
			free = append(free, n)
		}
	}
	former = former || current[0].Former
	switch {
	case former && h.random.IntN(2) == 0:
		h.kill("rollback")
	case len(staged) > 0 && (len(free) == 0 || h.random.IntN(2) == 0):
		n := staged[h.random.IntN(len(staged))]
		if h.random.IntN(2) == 0 { // otherwise it stays staged, or as it was when it was live
			if r := h.run("stage", "--release", fmt.Sprint(n)); r.status != 0 {
				h.Fatalf("after %s: %s", strings.Join(h.done, ", "), r.errs)
			}
		}
		h.kill("switch", "--release", fmt.Sprint(n))
	case len(free) > 0:
		h.run("stage", "--release", fmt.Sprint(free[h.random.IntN(len(free))])).want(0)
		h.wantQuiet()
	default:
		h.run("release", "prune", "--keep", "0").want(0)
	}
}

// kill kills a command at a random moment and checks that the next run repairs what it left.
func (h *history) kill(args ...string) {
	h.Helper()
	after := time.Duration(1.8 * h.random.Float64() * float64(h.span))
	dead := h.site.killed(after, args...)
	intended := h.intended()
	what := fmt.Sprintf("%s after %s (killed %t, intended %t)", strings.Join(args, " "), after.Round(time.Millisecond),
		dead, intended)
	h.done = append(h.done, what)
	if dead {
		h.kills++
	}
	next := "up"
	if intended && h.random.IntN(4) == 0 {
		h.reboot()
		next = "resume"
	}
	if r := h.run(next); r.status != 0 || h.intended() {
		h.Fatalf("%s, then %s: exit status %d, %s\n%s", strings.Join(h.done, ", "), next, r.status, r.errs, h.kept())
	}
	whole, partly := h.onLive()
	at := whole["web0"]
	for _, name := range []string{"web0", "web1", "store"} {
		if len(at) != 1 || !slices.Equal(whole[name], at) || len(partly[name]) > 0 {
			h.Fatalf("%s: on the live networks are %v, and partly %v", strings.Join(h.done, ", "), whole, partly)
		}
	}
	h.settled()
	h.wantQuiet()
}

// wantQuiet: what only a live node does is done by no instance in quarantine, also when it was live
// as the host went down.
func (h *history) wantQuiet() {
	h.Helper()
	for release, n := range h.instances()["store"] {
		if n.Staged && n.State == observe.Running {
			if got := h.in(release, "store", "systemctl is-active only.service || true"); got != "inactive" {
				h.Fatalf("%s: in the quarantine of release %d only.service is %s", strings.Join(h.done, ", "), release, got)
			}
		}
	}
}
