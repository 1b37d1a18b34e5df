package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	proof "orrery/internal/control/ci"
	"orrery/internal/control/testrun"
	"orrery/internal/control/twins"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/twin"
)

// A proofreader records the progress of a proof.
type proofreader struct {
	*told
	results []testrun.Result
	swept   []string
}

func (p *proofreader) TwinOutput() string      { return p.text() }
func (p *proofreader) Tested(r testrun.Result) { p.results = append(p.results, r) }
func (p *proofreader) Swept(twin string)       { p.swept = append(p.swept, twin) }

func (p *proofreader) outcomes() string {
	var all []string
	for _, r := range p.results {
		all = append(all, r.Name+" "+string(r.Outcome))
	}
	return strings.Join(all, ", ")
}

const tests = `
[test.answers]
node    = "web1"
command = ["probe", "well"]
[test.balance]
node    = "db"
command = ["probe", "badly"]
`

func proofDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.write("site.toml", toykat+tests)
	return d
}

// prove runs the tests in a twin. Commands with the argument "badly" fail in its nodes.
func (d *desk) prove(o proof.Options) (*proof.Runner, *proofreader, error) {
	d.Helper()
	w := &proofreader{told: d.watch}
	o.Timeout = time.Minute
	p, err := proof.New(d.Session, w, o)
	if err != nil {
		return nil, w, err
	}
	d.of(p.Twin.Key()).Command = func(_ context.Context, _ engine.Ref, c host.Command) error {
		if len(c.Args) > 1 && c.Args[1] == "badly" {
			return errors.New("it did badly")
		}
		return nil
	}
	return p, w, p.Run(d.Context())
}

// TestProof: the tests of a site run in a twin, which is destroyed afterwards. The report has their
// results.
func TestProof(t *testing.T) {
	d := proofDesk(t)
	junit := filepath.Join(t.TempDir(), "report.xml")
	p, w, err := d.prove(proof.Options{JUnit: junit, Release: "next", Orrery: "1.2"})
	d.must(err)
	if w.outcomes() != "answers passed, balance failed" || p.Kept || len(d.Register().Twins()) > 0 {
		t.Errorf("the tests: %s; twins: %+v", w.outcomes(), d.Register().Twins())
	}
	text, err := os.ReadFile(junit)
	d.must(err)
	for _, want := range []string{`tests="2"`, `failures="1"`, `value="701"`, `value="1.2"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	_, _, err = d.prove(proof.Options{JUnit: "/no/such/directory/x/report.xml"})
	if os.Geteuid() != 0 {
		d.wantExit(err, problem.Failed, "the report cannot be written")
	} else {
		d.must(err)
		d.must(os.RemoveAll("/no"))
	}
}

// TestProofOnly: tests left out by --only are skipped, and the twin is kept if requested.
func TestProofOnly(t *testing.T) {
	d := proofDesk(t)
	p, w, err := d.prove(proof.Options{Only: []string{"web1"}, Keep: true})
	d.must(err)
	if w.outcomes() != "answers passed, balance skipped" || !p.Kept || len(d.Register().Twins()) != 1 {
		t.Errorf("the tests: %s; twins: %+v", w.outcomes(), d.Register().Twins())
	}
	_, w, err = d.prove(proof.Options{})
	d.must(err)
	if len(w.swept) > 0 || len(d.Register().Twins()) != 1 {
		t.Errorf("swept were %v", w.swept)
	}
	d.must(twins.Destroy(t.Context(), d.Session, p.Twin.Options.Name))
}

// TestProofBroken: a twin that does not come up is in the report, and is destroyed afterwards. The
// next run destroys a twin that a killed run left.
func TestProofBroken(t *testing.T) {
	d := proofDesk(t)
	d.fault.Fail("Start", "db", 1, nil)
	p, w, err := d.prove(proof.Options{})
	d.wantExit(err, problem.Left, "db")
	if w.outcomes() != "bring-up "+string(testrun.Errored) || len(d.Register().Twins()) > 0 {
		t.Errorf("the tests: %s; twins: %+v", w.outcomes(), d.Register().Twins())
	}
	left := twin.Record{Site: "toykat", Dir: d.dir, Options: p.Twin.Options, Created: time.Now()}
	left.Options.Name = "ci-killed"
	d.must(d.Register().WriteTwin(left))
	d.must(os.WriteFile(filepath.Join(d.dirs.Site("toykat.ci-killed"), "ci.lock"), nil, 0o600))
	_, w, err = d.prove(proof.Options{})
	d.must(err)
	if strings.Join(w.swept, " ") != "ci-killed" || len(d.Register().Twins()) > 0 {
		t.Errorf("swept were %v; twins: %+v", w.swept, d.Register().Twins())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w = &proofreader{told: d.watch}
	p, err = proof.New(d.Session, w, proof.Options{Timeout: time.Minute})
	d.must(err)
	d.wantExit(p.Run(ctx), problem.Interrupted, "run the same command again")
	p, err = proof.New(d.Session, w, proof.Options{Timeout: time.Nanosecond})
	d.must(err)
	d.wantExit(p.Run(t.Context()), problem.Failed, "did not pass", "not done within 1ns")
	if len(d.Register().Twins()) > 0 {
		t.Errorf("left is %+v", d.Register().Twins())
	}
}

// TestNoProof: errors in the options are reported before anything is done.
func TestNoProof(t *testing.T) {
	d := newDesk(t)
	_, _, err := d.prove(proof.Options{})
	d.wantExit(err, problem.Mistake, "declares no test")
	d.write("site.toml", toykat+tests)
	_, _, err = d.prove(proof.Options{Only: []string{"web2"}})
	d.wantExit(err, problem.Usage, "none of the 2 tests is on a node of --only")
	_, _, err = d.prove(proof.Options{Release: "x"})
	d.wantExit(err, problem.Usage, "not a release number")
	d.Twin = "dev"
	_, _, err = d.prove(proof.Options{})
	d.wantExit(err, problem.Usage, "creates its own twin")
	if len(d.Register().Twins()) > 0 {
		t.Errorf("left is %+v", d.Register().Twins())
	}
}
