package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"orrery/internal/lab/setting"
)

// plantedLab has an ordinary setting, and one in which everything takes a tenth longer.
const plantedLab = `
title  = "a planted delay"
rounds = 10
most   = 12
rounds_per_instance = 1
quiet     = "none"   # whatever else this machine does, the delay is there
disturbed = 1

[setting.veth]
network = "veth"

[setting.slow]
network = "veth"

[test.wait]
kind = "command"
command = '''
case $ORRERY_SETTING in slow) wait=0.150 ;; *) wait=0.100 ;; esac
began=$(date +%s%N); sleep $wait; ended=$(date +%s%N)
echo took $((ended - began))
'''
figures = [{ name = "wait", unit = "ns", better = "less", regex = "took ([0-9]+)" }]

[test.fails]
kind = "command"
only = ["veth"]
command = '''
if test "$ORRERY_SETTING" = veth; then echo "no such luck" >&2; exit 3; fi
echo 1
'''
figures = [{ name = "one", unit = "1", better = "neither", regex = "([0-9]+)" }]
`

// An answer is the part of report.json that these tests read.
type answer struct {
	Kept  int
	Tests []struct {
		Name    string
		Figures []struct {
			Name  string
			Cells []cellAnswer
		}
		Failures []struct{ Setting, Reason, Output string }
	}
}

// A cellAnswer is a figure in a setting.
type cellAnswer struct {
	Setting string
	Again   string
	Missing string
	Summary *struct{ Median float64 }
	Ratio   *ratioAnswer
}

// A ratioAnswer is the comparison of a setting with bare.
type ratioAnswer struct {
	Value, Low, High float64
	Verdict          string
}

// newLab returns a directory for experiments and bundles. When the test ends, it checks that
// nothing of the lab is left on the host.
func newLab(t *testing.T) *site {
	s := newSite(t, setting.SiteName, "", nil)
	return s
}

func (s *site) answer(bundle string) answer {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(bundle, "report.json"))
	if err != nil {
		s.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		s.Fatal(err)
	}
	return a
}

// verdict returns the verdict of a table on a figure in a setting.
func (a answer) verdict(figure, setting string) string { return a.cell(figure, setting).Ratio.Verdict }

// ratio returns the ratio of a figure in a setting to that of bare.
func (a answer) ratio(figure, setting string) float64 { return a.cell(figure, setting).Ratio.Value }

// cell returns a figure in a setting that was compared with bare, or an empty one.
func (a answer) cell(figure, setting string) cellAnswer {
	for _, t := range a.Tests {
		for _, f := range t.Figures {
			for _, c := range f.Cells {
				if f.Name == figure && c.Setting == setting && c.Ratio != nil {
					return c
				}
			}
		}
	}
	return cellAnswer{Ratio: new(ratioAnswer)}
}

// TestLab: a planted delay is found and nothing else. A test that fails in one setting is reported
// and does not stop the rest. An interrupted or killed run can be resumed. The figures can be
// recomputed, and nothing is left behind.
func TestLab(t *testing.T) {
	s := newLab(t)
	s.write("lab/planted.toml", plantedLab)
	bundle := filepath.Join(s.dir, "bundle")
	run := []string{"lab", "run", filepath.Join(s.dir, "lab/planted.toml"), "--to", bundle}

	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		before := s.trials(bundle)
		cmd, _, errs := s.command(run...)
		wait, err := begin(cmd)
		if err != nil {
			t.Fatal(err)
		}
		s.eventually(func() error {
			if s.trials(bundle) >= before+10 {
				return nil
			}
			return os.ErrNotExist
		})
		_ = cmd.Process.Signal(signal)
		_ = wait()
		if status := cmd.ProcessState.ExitCode(); signal == syscall.SIGINT && status != 130 {
			t.Fatalf("interrupted, it ends with %d\n%s", status, errs)
		}
		if signal == syscall.SIGINT {
			s.wantNoTrace()
		}
	}
	r := s.run(run...).want(0, "resuming ")
	s.wantNoTrace()

	a := s.answer(bundle)
	// On a host that is sometimes busy with other tests, consecutive rounds may be alike, and then
	// too few of them count.
	moody := strings.Contains(r.out, "autocorrelation")
	if got := a.verdict("wait", "slow"); got != "differs" && (got != "undecided" || !moody) {
		t.Errorf("the planted delay: %q\n%s", got, r.out)
	}
	if got := a.ratio("wait", "slow"); got < 1.3 || got > 1.7 {
		t.Errorf("with a delay of a half planted, it takes %v times as long\n%s", got, r.out)
	}
	if got := a.verdict("wait", "veth"); got == "differs" || got == "" {
		t.Errorf("a container without a delay: %q\n%s", got, r.out)
	}
	if all := s.labInstances(bundle); len(all) < 5 || all[0] {
		t.Errorf("the nodes were not made anew: instances %v", all)
	}
	if got := a.verdict("wait", "veth again"); got != "" {
		t.Errorf("the twin of the container is judged as a setting: %q", got)
	}
	told := false
	for _, one := range a.Tests {
		for _, f := range one.Failures {
			told = told || f.Setting == "veth" && strings.Contains(f.Output, "no such luck")
		}
	}
	if !told {
		t.Errorf("the test that fails is not told with its output: %+v", a.Tests)
	}

	s.run("lab", "check", bundle).want(0)
	s.run("lab", "report", bundle).want(0, "wait")
	s.run("lab", "compare", bundle, bundle).want(0)
	s.run("lab", "history", bundle, bundle, "--html", filepath.Join(s.dir, "history.html")).
		want(0, "wait, wait, slow", "history.html")
	if samples, err := os.ReadFile(filepath.Join(bundle, "samples.csv")); err != nil ||
		!strings.Contains(string(samples), "wait,wait,ns,slow,1,") {
		t.Errorf("samples.csv: %v %.300s", err, samples)
	}
	s.run("lab", "ls", s.dir).want(0, "bundle", "done", "a planted delay")
	edited := filepath.Join(bundle, "report.json")
	text, _ := os.ReadFile(edited)
	text = regexp.MustCompile(`"median": [0-9.e+-]+`).ReplaceAll(text, []byte(`"median": 1`))
	if err := os.WriteFile(edited, text, 0o644); err != nil {
		t.Fatal(err)
	}
	s.run("lab", "check", bundle).want(1, "wait")
}

// labInstances returns the instances of nodes in which rounds were done.
func (s *site) labInstances(bundle string) map[int]bool {
	all := map[int]bool{}
	text, _ := os.ReadFile(filepath.Join(bundle, "trials.jsonl"))
	for line := range strings.Lines(string(text)) {
		var t struct{ Instance int }
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			s.Fatal(err)
		}
		all[t.Instance] = true
	}
	return all
}

// trials returns the number of trials in a bundle so far.
func (s *site) trials(bundle string) int {
	text, _ := os.ReadFile(filepath.Join(bundle, "trials.jsonl"))
	return strings.Count(string(text), "\n")
}

// everyKind does a little of each kind of test, in each kind of setting that this host supports.
const everyKind = `
title  = "every kind of test in every kind of setting"
rounds = 5
most   = 5
rounds_per_instance = "none" # nothing need be decided here
again  = "none"
quiet  = "none"

[setting.veth]
[setting.routed]
network = "routed"
[setting.macvlan]
network = "macvlan"
[setting.nic]
network = "exclusive"
[setting.limited]
cpus       = 1
pin        = "0"
memory     = "512MiB"
privileged = true
[setting.vf]
network = "sriov"

[test.capture]
kind      = "capture"
only      = ["nic"]
most      = "1Gbit/s" # a busy machine reaches that, too
trial     = "50ms"
trials    = 3
lossy     = 1
precision = 0.1
paper     = false
[test.net]
kind       = "net"
only       = ["routed", "macvlan"]
protocols  = ["tcp"]
directions = ["forward"]
streams    = [1]
packets    = false
rtt        = false
[test.micro]
kind = "micro"
only = ["veth", "limited"]
rows = ["syscall", "open-close", "fork-execve"]
time = 0.1
[test.cpu]
kind    = "cpu"
only    = ["veth", "limited"]
methods = ["int64"]
work    = 100
copies  = [1, 2]
[test.disk]
kind     = "disk"
only     = ["veth"]
size     = "16MiB"
matrices = []
jobs     = [{ rw = "randread", block = "4KiB", threads = 4 }]
seconds  = 0.3
[test.mpi]
kind       = "mpi"
only       = ["nic"]
sizes      = [0, 64, 4096, 65536, 1048576]
collective = [64, 16384]
time       = 0.25
`

// labEveryKind: each kind of test gives figures in each kind of setting. Orrery makes and removes
// the settings itself, and reports what this host does not support.
func labEveryKind(t *testing.T) {
	s := newLab(t)
	s.write("lab/every.toml", everyKind)
	bundle := filepath.Join(s.dir, "every")
	r := s.run("lab", "run", filepath.Join(s.dir, "lab/every.toml"), "--to", bundle).want(0)
	s.wantNoTrace()
	figures := 0
	for _, one := range s.answer(bundle).Tests {
		for _, f := range one.Failures {
			t.Errorf("%s in %s: %s\n%s", one.Name, f.Setting, f.Reason, f.Output)
		}
		for _, figure := range one.Figures {
			for _, c := range figure.Cells {
				switch {
				case c.Setting == "vf" && c.Missing == "":
					t.Errorf("%s, %s: the setting vf is not told to be missing", one.Name, figure.Name)
				case c.Ratio != nil:
					figures++
				}
			}
		}
	}
	if figures < 50 {
		t.Errorf("only %d figures in settings\n%s%s", figures, r.out, r.errs)
	}
	s.run("lab", "check", bundle).want(0)
}

// TestLabMisuse: errors are reported before anything is made.
func TestLabMisuse(t *testing.T) {
	s := newLab(t)
	s.write("lab/wrong.toml", "title = 1\nrouns = 3\n[setting.a]\nnetwork = \"vet\"\n[test.x]\nkind = \"cpus\"\n")
	s.run("lab", "run", filepath.Join(s.dir, "lab/wrong.toml")).want(3, "wrong.toml:2", "rounds", "veth", "cpu")
	s.run("lab", "run", filepath.Join(s.dir, "lab/none.toml")).want(3, "none.toml")
	s.run("lab", "run", "--rounds", "1").want(2, "fewer than 5")
	s.run("lab", "run", "--only", "disks").want(2, "--only disks", "did you mean disk")
	s.run("lab", "report", "nothing").want(2, "is not a bundle")
	s.run("lab", "check", s.dir).want(2, "is not a bundle")
	s.run("lab", "run", "--show").want(0, "setting.veth")
}
