package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"orrery/internal/ci"
	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/tree"
)

func (r *ciRun) run(ctx context.Context, junit string, keep bool, timeout time.Duration) error {
	if err := r.sweepCI(ctx); err != nil {
		return err
	}
	// Whoever finds the twin later knows by this lock whether the run that made it still lives.
	lock, err := host.TakeLock(r.ciLock(r.record.Key()), host.Holder{Who: control.Who(), Pid: os.Getpid(), Since: time.Now(), Command: r.Command})
	if err != nil {
		return err
	}
	defer lock.Release()
	within, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done within %s", timeout))
	wrong := r.prove(within)
	if late := context.Cause(within); wrong != nil && late != nil && ctx.Err() == nil {
		wrong = problem.New(problem.Failed, "site %s was not proven", r.report.Site).Because(late).Try("say a longer --timeout, or see in the report what took so long")
	}
	cancel()
	r.report.Took = time.Since(r.report.Began)
	if keep {
		wrong = errors.Join(wrong, os.Remove(r.ciLock(r.record.Key())))
		fmt.Fprintf(r.err, "The twin is left: orrery -C %s --twin %s status\n", r.record.Dir, r.record.Options.Name)
	} else if err := r.quiet().EndTwin(context.WithoutCancel(ctx), r.record); err != nil {
		wrong = errors.Join(wrong, err)
	}
	if err := r.write(junit); err != nil {
		wrong = errors.Join(wrong, err)
	}
	fmt.Fprintln(r.out, r.report.Summary())
	if ctx.Err() != nil {
		return problem.New(problem.Interrupted, "interrupted").Because(wrong).Try("run the same command again")
	}
	if wrong == nil && !r.report.OK() {
		return problem.Status(problem.Unhealthy)
	}
	return wrong
}

// prove brings the twin up and runs the tests.
func (r *ciRun) prove(ctx context.Context) error {
	began := time.Now()
	if _, _, err := r.quiet().CreateTwin(ctx, r.record); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		r.tell(ci.Result{
			Name: "bring-up", Outcome: ci.Broken, Reason: r.keys.Redact("the twin does not come up: " + err.Error()),
			Output: r.keys.Redact(r.log.String()), Took: time.Since(began),
		})
		return err
	}
	for _, x := range r.site.Secrets { // known now, so that none is seen in what tests print
		if _, err := r.keys.Value(ctx, x.Name); err != nil {
			return err
		}
	}
	runners, err := r.Runners(ctx, r.site)
	if err != nil {
		return err
	}
	ci.Run(ctx, r.site.Tests, ci.Place{Redact: r.keys.Redact, Env: r.testEnv, In: func(node string) (host.Runner, error) {
		if in, ok := runners[node]; ok {
			return in, nil
		}
		return nil, control.NotRunning(node)
	}}, r.tell)
	for _, t := range r.original.Tests {
		if !slices.ContainsFunc(r.site.Tests, func(x site.Test) bool { return x.Name == t.Name }) {
			r.tell(ci.Result{Name: t.Name, Node: t.Node, Outcome: ci.Skipped, Reason: "its node is not among those of --only"})
		}
	}
	return nil
}

func (r *ciRun) tell(result ci.Result) {
	r.report.Results = append(r.report.Results, result)
	ci.Tell(r.out, result)
}

// testEnv is what a test sees besides a small standard environment.
func (r *ciRun) testEnv(t site.Test) []string {
	return []string{
		"PATH=" + role.Venv + "/bin:" + host.Path, "ORRERY_TEST=" + t.Name, "ORRERY_SITE=" + r.site.Name, "ORRERY_NODE=" + t.Node,
		"ORRERY_INVENTORY=/etc/orrery/inventory.json", "ORRERY_SECRETS=/etc/orrery/secrets",
	}
}

// quiet is the program with nothing but results on its standard output; what it tells meanwhile is kept for the report.
func (r *ciRun) quiet() *app {
	b := r.app.another()
	b.err = io.MultiWriter(r.err, &r.log)
	b.out = b.err
	return b
}

func (r *ciRun) write(junit string) error {
	if junit == "" {
		return nil
	}
	var b bytes.Buffer
	if err := r.report.WriteJUnit(&b); err != nil {
		return err
	}
	if err := host.WriteFile(host.File{Path: junit, Content: b.Bytes(), Mode: 0o644}); err != nil {
		return problem.New(problem.Failed, "the report cannot be written").At(junit).Because(problem.Reason(err))
	}
	return nil
}

func (a *app) ciLock(key string) string { return filepath.Join(a.Dirs.Site(key), "ci.lock") }

// sweepCI ends the twins of runs that were killed. One that was left on purpose has no such lock.
func (r *ciRun) sweepCI(ctx context.Context) error {
	locks, err := filepath.Glob(r.ciLock(r.original.Name + "." + ciPrefix + "*"))
	if err != nil {
		return err
	}
	for _, path := range locks {
		lock, err := host.TakeLock(path, host.Holder{Who: control.Who(), Pid: os.Getpid(), Since: time.Now(), Command: r.Command})
		if err != nil {
			continue // its run lives
		}
		err = r.sweepOne(ctx, filepath.Base(filepath.Dir(path)))
		lock.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *ciRun) sweepOne(ctx context.Context, key string) error {
	record, err := r.ReadTwin(key)
	if errors.Is(err, os.ErrNotExist) { // it was killed before there was a twin
		return tree.RemoveAll(r.Dirs.Site(key))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(r.err, "ends twin %s, left by a run that was killed\n", record.Options.Name)
	b := r.quiet()
	b.Force = true
	return b.EndTwin(ctx, record)
}
