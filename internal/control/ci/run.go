package ci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/testrun"
	"orrery/internal/control/twins"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
)

// Run creates the twin, runs the tests and destroys the twin in any case. Failed tests are in the
// report, and are not returned as an error.
func (p *Runner) Run(ctx context.Context) error {
	if err := p.sweep(ctx); err != nil {
		return err
	}
	// Later runs know by this lock whether the run that created the twin is still alive.
	lock, err := host.TakeLock(ctx, p.lockPath(p.Twin.Key()), control.Holder(p.Session))
	if err != nil {
		return err
	}
	defer lock.Release()
	within, cancel := context.WithTimeoutCause(ctx, p.options.Timeout, fmt.Errorf("not done within %s", p.options.Timeout))
	wrong := p.runTests(within)
	if late := context.Cause(within); wrong != nil && late != nil && ctx.Err() == nil {
		wrong = problem.New(problem.Failed, "site %s did not pass", p.Report.Site).Because(late).
			Try("use a longer --timeout, or see in the report what took so long")
	}
	cancel()
	p.Report.Took = time.Since(p.Report.Began)
	if p.options.Keep {
		wrong, p.Kept = errors.Join(wrong, os.Remove(p.lockPath(p.Twin.Key()))), true
	} else if err := p.destroyTwin(context.WithoutCancel(ctx), p.Twin); err != nil {
		wrong = errors.Join(wrong, err)
	}
	if err := p.writeReport(); err != nil {
		wrong = errors.Join(wrong, err)
	}
	if ctx.Err() != nil {
		return problem.New(problem.Interrupted, "interrupted").Because(wrong).Try("run the same command again")
	}
	return wrong
}

// runTests brings the twin up and runs the tests.
func (p *Runner) runTests(ctx context.Context) error {
	began := time.Now()
	if _, _, err := twins.Create(ctx, p.Session, p.Twin); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		p.tested(testrun.Result{
			Name: "bring-up", Outcome: testrun.Errored, Reason: p.keys.Redact("the twin did not come up: " + err.Error()),
			Output: p.keys.Redact(p.watcher.TwinOutput()), Took: time.Since(began),
		})
		return err
	}
	f, err := p.Session.Hosts(ctx, p.site)
	if err != nil {
		return err
	}
	p.keys.Find = f.SecretKeeper().Generated
	for i := range p.site.Secrets { // read them now, so that none of them appears in the output of tests
		for _, stored := range secretspec.Names(p.site, &p.site.Secrets[i]) {
			if _, err := p.keys.Value(ctx, stored); err != nil {
				return err
			}
		}
	}
	runners, err := way.Runners(ctx, p.Session, p.site)
	if err != nil {
		return err
	}
	testrun.Run(ctx, p.site.Tests, testrun.NodeAccess{Redact: p.keys.Redact, Env: p.env,
		In: func(node string) (host.Runner, error) {
			if in, ok := runners[node]; ok {
				return in, nil
			}
			return nil, way.NotRunningError(node)
		}}, p.tested)
	for _, t := range p.original.Tests {
		if !slices.ContainsFunc(p.site.Tests, func(x site.Test) bool { return x.Name == t.Name }) {
			p.tested(testrun.Result{Name: t.Name, Node: t.Node, Outcome: testrun.Skipped,
				Reason: "its node is not selected by --only"})
		}
	}
	return nil
}

func (p *Runner) tested(result testrun.Result) {
	p.Report.Results = append(p.Report.Results, result)
	p.watcher.Tested(result)
}

// env returns the environment variables of a test, in addition to the standard ones.
func (p *Runner) env(t site.Test) []string {
	return []string{
		"PATH=" + role.Venv + "/bin:" + host.Path, "ORRERY_TEST=" + t.Name, "ORRERY_SITE=" + p.site.Name,
		"ORRERY_NODE=" + t.Node,
		"ORRERY_INVENTORY=/etc/orrery/inventory.json", "ORRERY_SECRETS=/etc/orrery/secrets",
	}
}

func (p *Runner) writeReport() error {
	path := p.options.JUnit
	if path == "" {
		return nil
	}
	var b bytes.Buffer
	if err := p.Report.WriteJUnit(&b); err != nil {
		return err
	}
	if err := host.WriteNamed(path, b.Bytes(), 0o644); err != nil {
		return problem.New(problem.Failed, "the report cannot be written").At(path).Because(problem.PathErrorCause(err))
	}
	return nil
}
