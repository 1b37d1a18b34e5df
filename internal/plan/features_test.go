package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/device"
	"orrery/internal/site/diskio"
	"orrery/internal/site/feature"
	"orrery/internal/site/traffic"
)

// TestFeatures: a limit that a host's kernel cannot enforce, or its interface not carry, is refused before
// anything is done.
func TestFeatures(t *testing.T) {
	lacks := func(name string) observe.Host {
		return observe.Host{Lacks: map[string]observe.Missing{name: {What: "it is old", Cure: "boot another kernel"}}}
	}
	fuse := device.Device{Path: "/dev/fuse", Shared: true}
	fast := observe.Host{Around: observe.HostNetworking{Speeds: map[string]int64{"eth1": 1e9}}}
	limited := func(l traffic.Limits) func(*site.Site) {
		return func(s *site.Site) {
			s.Nodes[0].NICs[0].Traffic = l
			s.Networks[0].Interface, s.Networks[0].VLAN, s.Networks[0].NAT = "eth1", 100, false
		}
	}
	for name, c := range map[string]struct {
		edit func(*site.Site)
		host observe.Host
		want string
		exit problem.Kind
	}{
		"nothing needed": {func(*site.Site) {}, lacks(feature.Rate), "", 0},
		"no htb": {limited(traffic.Limits{Rate: 1e6}), lacks(feature.Rate),
			"node db cannot be limited as declared on host sv1: it is old (boot another kernel; or remove the limit)",
			problem.Unable},
		"netem is not needed": {limited(traffic.Limits{Rate: 1e6}), lacks(feature.Delay), "", 0},
		"no netem": {limited(traffic.Limits{Latency: time.Millisecond}), lacks(feature.Delay),
			"it is old", problem.Unable},
		"no blkio": {func(s *site.Site) { s.Nodes[0].Limits.Disk = diskio.Limits{Read: 1e6} }, lacks(feature.Disk),
			"it is old", problem.Unable},
		"a device": {func(s *site.Site) { s.Nodes[0].Devices = []device.Device{fuse} }, lacks(feature.Rate), "", 0},
		"a missing device": {func(s *site.Site) { s.Nodes[0].Devices = []device.Device{fuse} },
			lacks(feature.Device(fmt.Sprintf("%s/%d", observatory().Key(), observatory().Nodes[0].FullID()), fuse)),
			"node db on host sv1: it is old (boot another kernel)", problem.Unable},
		"as fast as the interface": {limited(traffic.Limits{Rate: 1e9}), fast, "", 0},
		"faster than the interface": {limited(traffic.Limits{Rate: 2e9}), fast,
			"node db: net.cam: rate 2Gbit/s is more than the 1Gbit/s of interface eth1 of host sv1 " +
				"(write a rate of at most 1Gbit/s)",
			problem.Mistake},
		"of unknown speed": {limited(traffic.Limits{Rate: 2e9}), observe.Host{}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := observatory()
			c.edit(s)
			c.host.Name, c.host.Cpus, c.host.Memory = "sv1", 8, 1<<40
			c.host.Engines = map[string]observe.Capabilities{s.Nodes[0].Engine: {}}
			c.host.Around.Interfaces = []string{"eth1"}
			_, err := plan.Up(s, []observe.Host{c.host}, plan.Goal{})
			if c.want == "" && err != nil || c.want != "" &&
				(err == nil || !strings.Contains(err.Error(), c.want) || problem.ExitCode(err) != int(c.exit)) {
				t.Error(err)
			}
		})
	}
}
