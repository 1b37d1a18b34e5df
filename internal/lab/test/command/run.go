package command

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/lab/test/net/serve"
	"orrery/internal/problem"
)

// Check checks that the programs exist and that the port of a far command is free.
func (c *command) Check(ctx context.Context, t *test.Trial) error {
	for _, program := range c.Programs {
		if err := checkProgram(ctx, t.Near, program); err != nil {
			return err
		}
	}
	if c.options.Far || !c.far.empty() {
		if err := t.NeedFar(); err != nil {
			return err
		}
	}
	if c.far.empty() {
		return nil
	}
	return serve.WaitUntilFree(ctx, t.Far, serve.Protocol(c.FarProto), c.FarPort+t.Copy)
}

// checkProgram checks that a program exists. The last word that runs it is its name in a node, and its file
// on the bare host.
func checkProgram(ctx context.Context, p *place.Place, program string) error {
	words := p.Command(program)
	if _, err := place.Output(ctx, p, "/bin/sh", "-c", `command -v "$1"`, "sh", words[len(words)-1]); err != nil {
		return problem.New(problem.Unable, "program %s is missing", program).At(p.Name).
			Try("add the package that contains it to packages")
	}
	return nil
}

// detail is stored in the bundle beside the figures.
type detail struct {
	Seconds float64 `json:"seconds"` // from the start of the command to its end
}

// Run runs the command and finds the figures in its output.
func (c *command) Run(ctx context.Context, t *test.Trial) (test.Result, error) {
	env := c.environment(t)
	if !c.far.empty() {
		server, err := serve.Start(ctx, t.Far, serve.Protocol(c.FarProto), c.FarPort+t.Copy,
			host.Command{Args: c.far.argv(t.Far, c.Programs, env.vars)})
		if err != nil {
			return test.Result{}, err
		}
		defer server.Stop()
	}
	if _, err := place.Output(ctx, t.Near, "/bin/mkdir", "-p", env.dir); err != nil {
		return test.Result{}, problem.New(problem.Failed, "the work directory cannot be created").At(t.Near.Name).Because(err)
	}
	args := c.near.argv(t.Near, c.Programs, env.vars)
	out, span, err := untranslated(t).Measure(ctx, args[0], args[1:]...)
	if keep := t.Keep("output.txt", out); keep != nil {
		return test.Result{}, keep
	}
	if err != nil {
		return test.Result{}, problem.New(problem.Failed, "the command failed").At(t.Near.Name).Because(err)
	}
	r := test.Result{Detail: &detail{span.Ended.Sub(span.Began).Seconds()}}
	for i := range c.options.Figures {
		f := &c.options.Figures[i]
		value, series, err := f.read(string(out))
		if err != nil {
			return test.Result{}, c.withOutput(err, t.Near, string(out))
		}
		r.Samples = append(r.Samples, test.Sample{Figure: f.Name, Value: value})
		if len(series) > 1 {
			r.Series = append(r.Series, test.Series{Figure: f.Name, Step: f.Every, Values: series})
		}
	}
	return r, nil
}

// untranslated returns a copy of the trial whose place does not translate program names: the words have
// been translated already.
func untranslated(t *test.Trial) *test.Trial {
	near, trial := *t.Near, *t
	near.Programs, trial.Near = nil, &near
	return &trial
}

// withOutput adds the beginning of the output to an error.
func (c *command) withOutput(err error, p *place.Place, out string) error {
	text := strings.TrimSpace(beginning(out, 600))
	if text == "" {
		text = "(nothing)"
	}
	return problem.New(problem.Failed, "%v; its output", err).At(p.Name).
		Because(errors.New("\n    " + strings.ReplaceAll(text, "\n", "\n    "))).
		Try("only standard output is read; add 2>&1 to include standard error")
}

// environment holds the environment variables for a command and its work directory.
type environment struct {
	dir  string
	vars []string
}

func (c *command) environment(t *test.Trial) environment {
	e := environment{dir: path.Join(t.Near.Dir, strconv.Itoa(t.Copy))}
	e.vars = []string{
		"ORRERY_SETTING=" + t.Near.Name, "ORRERY_ROUND=" + strconv.Itoa(t.Round), "ORRERY_COPY=" + strconv.Itoa(t.Copy),
		"ORRERY_COPIES=" + strconv.Itoa(max(t.Of, 1)), "ORRERY_DIR=" + e.dir, "ORRERY_NEAR=" + address(t.Near),
	}
	if t.Far != nil {
		e.vars = append(e.vars, "ORRERY_FAR="+address(t.Far))
	}
	if c.FarPort > 0 {
		e.vars = append(e.vars, "ORRERY_PORT="+strconv.Itoa(c.FarPort+t.Copy))
	}
	return e
}

func address(p *place.Place) string {
	if !p.Address.IsValid() {
		return ""
	}
	return p.Address.String()
}
