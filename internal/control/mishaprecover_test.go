package control_test

import (
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// TestMishapRecover: any failure while an interrupted switch is completed is reported, and in the
// end all nodes have the same release.
func TestMishapRecover(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.up()
	d.stage(700)
	d.turnTo(700)
	d.stage(701)
	h := d.Host("sv1", "toykat", nil)
	other := d.others["sv2"].Host("sv2", "toykat", nil)
	set := func(number int) map[string]int { return map[string]int{"db": number, "web1": number} }
	interrupt := func(end int) func() {
		return func() {
			r, err := h.Releases.Read(t.Context())
			d.must(err)
			r.Switch = &observe.Switch{To: set(701), End: set(end), Who: "ada"}
			d.must(h.Releases.Write(t.Context(), r))
			if r, err = h.Releases.Read(t.Context()); err == nil {
				err = other.Releases.Copy(t.Context(), r)
			}
			d.must(err)
		}
	}
	up := func() error {
		_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
		return err
	}
	live := func(release string) func() bool {
		return func() bool {
			r, err := h.Releases.Read(t.Context())
			d.must(err)
			return r.Switch == nil && strings.Contains(d.nodes(), "db "+release+" running healthy") &&
				strings.Contains(d.nodes(), "web1 "+release+" running healthy")
		}
	}
	quiet := []string{"Releases.SendEdition"} // the other host has the same copy
	for _, end := range []int{700, 701} {
		d.try(m, trip{before: interrupt(end), verb: up, reached: live(map[int]string{700: "700",
			701: "701"}[end]), quiet: quiet})
	}
}

// TestMishapOnTrial: any failure while a site with a release on trial is changed is reported, and
// each host has an updated rollback plan.
func TestMishapOnTrial(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.up()
	d.stage(700)
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil,
		releases.SwitchOptions{Release: 700, Within: time.Hour})
	d.must(err)
	stopped := func() {
		_, err := sites.Stop(t.Context(), d.Session, d.site(), []string{"web1"})
		d.must(err)
	}
	d.try(m, trip{before: stopped, verb: func() error {
		_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
		return err
	}, reached: func() bool {
		return strings.Contains(d.nodes(), "web1 700 running healthy")
	}, quiet: []string{"Releases.SendEdition"}})
}

// TestMishapResume: any failure while a host starts its nodes on its own is reported, and in the
// end all of them are started.
func TestMishapResume(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.write("site.toml", strings.Replace(onEach, "net.far", "net.lan", 1))
	d.up()
	other := d.others["sv2"]
	d.try(m, trip{before: func() { d.Links.Close(); other.reboot() }, verb: func() error {
		return d.unattended(other).Run(t.Context(), apply.TriggerBoot, "")
	}, reached: func() bool { return strings.Contains(d.nodes(), "web1 none running") }})
}

// TestMishapSurvey: any failing query of a host is a problem of that host, and host check reports
// it.
func TestMishapSurvey(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.write("site.toml", strings.NewReplacer("net.far", "net.lan", `gateway = "10.99.1.1"`,
		"gateway = \"10.99.1.1\"\nencrypt = true").Replace(onEach))
	d.up()
	d.try(m, trip{before: func() {}, verb: func() error {
		for _, h := range d.Connector(d.site()).Check(t.Context()) {
			if len(h.Wrong) > 0 || !h.Answers {
				return problem.New(problem.Failed, "%s: %v", h.Host, h.Wrong)
			}
		}
		return nil
	}, reached: func() bool { return true }})
}
