package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"orrery/internal/host/cgroup"
	"orrery/internal/lab/prove"
	"orrery/internal/observe"
)

// TestLabProve: limits are loaded and told, a limit that the kernel does not have as declared never
// holds, and the load ends with orrery, even if that is killed. The host may be busy, so that a limit cannot
// be told. What comes through is then too little, never too much.
func TestLabProve(t *testing.T) {
	t.Parallel()
	disk := `disk = { write = "4MB/s" }`
	if cgroup.LacksDiskLimits() != (observe.Missing{}) {
		disk = ""
	}
	s := newSite(t, "it-prove", `
[network.lan]
subnet = "10.99.58.0/24"
[image.debian]
suite = "bookworm"
[node.bound]
id = 10
net.lan = { address = "auto", rate = "5Mbit/s" }
memory = "512MiB"
swap = "0"
`+disk+`
[node.spun]
id = 11
cpus = 0.2
[node.free]
id = 12
`, nil)
	s.do("up")
	s.run("lab", "prove", "free").want(2, "no node here declares a limit")
	s.run("lab", "prove", "--rounds", "0").want(2, "--rounds")
	page := filepath.Join(t.TempDir(), "limits.html")
	rows := s.proves("--html", page)
	want := []string{"bound net.lan.rate to the node", "bound net.lan.rate from the node", "bound disk.write",
		"bound memory", "spun cpus"}
	if disk == "" {
		want = slices.Delete(want, 2, 3)
	}
	var titles []string
	for _, r := range rows {
		titles = append(titles, r.Node+" "+r.Title())
		switch {
		case r.Kind == prove.Memory:
			if r.Verdict != prove.Untold || !strings.Contains(r.Why, "own programs") {
				t.Errorf("memory %s because %s", r.Verdict, r.Why)
			}
		case r.Measured > 1.5*r.Value:
			t.Errorf("%s: %v of %v passes", r.Title(), r.Measured, r.Value)
		case len(r.Rounds) == 0:
			t.Errorf("%s was not measured: %s", r.Title(), r.Why)
		}
	}
	if !slices.Equal(titles, want) {
		t.Errorf("%q, want %q", titles, want)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "net.lan.rate from the node") {
		t.Errorf("%v: %.200s", err, text)
	}
	s.settled()

	if disk != "" { // another program raises a limit
		held, file := s.diskLimitFile(10)
		before, err := os.ReadFile(file)
		must(t, err)
		must(t, os.WriteFile(file, []byte(strings.Fields(string(before))[0]+held), 0))
		for _, r := range s.proves("bound") {
			if r.Kind == prove.Write && r.Verdict == prove.Holds {
				t.Errorf("the declared limit holds at %v", r.Measured)
			}
		}
		s.do("up")
	}

	// The load ends with orrery.
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		cmd, _, _ := s.command("lab", "prove", "spun", "--seconds", "600")
		wait, err := begin(cmd)
		must(t, err)
		s.eventually(func() error {
			if s.loads(11) == 0 {
				return fmt.Errorf("no load yet")
			}
			return nil
		})
		must(t, cmd.Process.Signal(signal))
		_ = wait()
		s.eventually(func() error {
			if n := s.loads(11); n > 0 {
				return fmt.Errorf("%d loads live on after %v", n, signal)
			}
			return nil
		})
	}
	s.settled()

	s.edit("site.toml", "[network.lan]", "site.production = true\n[network.lan]")
	s.run("lab", "prove").want(2, "is in production", "name the nodes")
	s.run("lab", "prove", "bound").want(9, "not confirmed")
	s.edit("site.toml", "site.production = true\n", "")
}

// proves runs short rounds and returns what they prove.
func (s *site) proves(args ...string) []prove.Row {
	s.Helper()
	r := s.run(append([]string{"lab", "prove", "--rounds", "1", "--seconds", "0.5", "--json"}, args...)...)
	var reply struct {
		Result prove.Report `json:"result"`
	}
	if err := json.Unmarshal([]byte(r.out), &reply); err != nil || !slices.Contains([]int{0, 4, 11}, r.status) {
		s.Fatalf("status %d, %v: %s%s", r.status, err, r.out, r.errs)
	}
	bad := reply.Result.Count(prove.TooHigh, prove.TooLow) > 0
	if (r.status == 11) != bad || (r.status == 0) != (!bad && reply.Result.Count(prove.Holds) > 0) {
		s.Errorf("status %d: %s", r.status, r.out)
	}
	return reply.Result.Rows
}

// loads returns how many processes load a node.
func (s *site) loads(id int) (n int) {
	for _, pid := range cgroup.OfNode(s.name, id).Processes() {
		words, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if strings.HasSuffix(string(words), "\x00lab\x00"+prove.Verb+"\x00") {
			n++
		}
	}
	return n
}
