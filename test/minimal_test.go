package test

import (
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/plan/kernel"
	"orrery/test/need"
)

func TestMinimal(t *testing.T) {
	need.Integration(t)
	before := host.ReadSettings(slices.Collect(maps.Keys(kernel.Settings)))
	s := newExample(t, "minimal", "it-minimal", "10.77.1.", "10.99.1.")
	s.run("plan").want(10, "create +node one: new", "1 node to create; [0-9]+ steps")
	s.run("plan", "-v").want(10, "create +node one: new", "1 create")
	s.run("up", "--dry-run").want(10, "node one: new", `create`)
	s.run("up").want(0, `one +10 +local +running`, "orrery shell one")
	s.run("up").want(0, "it-minimal is up: nothing to do")
	s.run("plan").want(0, "nothing to do")
	s.run("status").want(0)
	s.run("exec", "all", "--", "systemctl", "is-system-running", "--wait").
		want(0, `one \| running`, "1 of 1 nodes succeeded")
	s.run("check").want(0, "1 node.*no mistakes")
	others := bridges(t)
	s.run("down").want(0, "1 node taken down")
	s.wantNoTrace()
	// The host's former state is restored with the last network of all sites, including those of
	// tests of other packages. Its settings are restored too, see below.
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); others == 1 &&
		strings.Contains(string(mounts), " "+s.dirs.Run+" ") && bridges(t) == 0 {
		t.Errorf("%s is still mounted", s.dirs.Run)
	}
	s.run("down").want(0, "nothing to take down")
	s.run("status").want(11, "absent")

	// Without its directory.
	s.do("up")
	nowhere := s.nowhere()
	nowhere.run("ls").want(0, `it-minimal +up +1 of 1 run +`+s.dir+`\n`)
	if err := os.Rename(s.dir, s.dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	nowhere.run("ls").want(0, `it-minimal +up +1 of 1 run +`+s.dir+` \(gone\)`)
	nowhere.run("down", "--name", "it-minimal", "one").want(2, "leave out selectors")
	nowhere.run("down", "--name", "it-minima").want(2, "did you mean it-minimal?")
	others = bridges(t)
	nowhere.run("down", "--name", "it-minimal").want(0, "1 node taken down")
	s.wantNoTrace()
	nowhere.run("ls").want(0, `it-minimal +down +0 of 0 run `)
	nowhere.run("down", "--name", "it-minimal").want(0, "nothing to take down")
	if err := os.Rename(s.dir+"-moved", s.dir); err != nil {
		t.Fatal(err)
	}
	if after := host.ReadSettings(slices.Collect(maps.Keys(kernel.Settings))); others == 1 && bridges(t) == 0 &&
		!maps.Equal(before, after) {
		t.Errorf("kernel settings were %v and are %v", before, after)
	}
}

// bridges returns the number of bridges of all sites that are up on this machine.
func bridges(t *testing.T) (all int) {
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Name, "orb") {
			all++
		}
	}
	return all
}
