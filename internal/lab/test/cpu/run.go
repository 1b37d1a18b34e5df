package cpu

import (
	"context"
	"path"
	"strconv"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// detail is stored in the bundle beside the figures.
type detail struct {
	Version string           `json:"version"` // of stress-ng
	Timed   map[string]*loop `json:"timed,omitempty"`
	Work    map[string]*loop `json:"work,omitempty"`
}

// Run runs the methods one after another. In each method, the copies start together.
func (c *cpu) Run(ctx context.Context, t *test.Trial) (test.Result, error) {
	d := detail{Timed: map[string]*loop{}, Work: map[string]*loop{}}
	for _, m := range c.Methods {
		for _, way := range []struct {
			amount int
			option string
			into   map[string]*loop
		}{{c.Seconds, "--timeout", d.Timed}, {c.Work, "--cpu-ops", d.Work}} {
			if way.amount == 0 {
				continue
			}
			l, err := c.loop(ctx, t, m, way.option, strconv.Itoa(way.amount))
			if err != nil {
				return test.Result{}, err
			}
			way.into[m], d.Version = l, l.Version
		}
	}
	return test.Result{Samples: c.samples(d), Detail: &d}, nil
}

// loop runs one method.
func (c *cpu) loop(ctx context.Context, t *test.Trial, method, option, amount string) (*loop, error) {
	dir := path.Join(t.Near.Dir, strconv.Itoa(t.Copy))
	// Write the YAML to a file: if stdout is a pipe, it cannot be opened by name where user IDs are
	// mapped.
	file := path.Join(dir, "stress-ng.yaml")
	if _, err := place.Output(ctx, t.Near, "/bin/sh", "-c", `mkdir -p "$1" && rm -f "$2"`, "sh", dir, file); err != nil {
		return nil, problem.New(problem.Failed, "the work directory cannot be used").At(t.Near.Name).Because(err)
	}
	_, _, err := t.Measure(ctx, "stress-ng", "--cpu", "1", "--cpu-method", method, option, amount, "--no-rand-seed",
		"--metrics", "--yaml", file, "--temp-path", dir)
	if err != nil {
		return nil, problem.New(problem.Failed, "stress-ng: method %s", method).At(t.Near.Name).Because(err)
	}
	text, err := place.Output(ctx, t.Near, "/bin/cat", file)
	if err != nil {
		return nil, problem.New(problem.Failed, "stress-ng wrote no metrics for method %s", method).At(t.Near.Name).Because(err).
			Try("check whether the disk is full")
	}
	if err := t.Keep(method+option+".yaml", text); err != nil {
		return nil, err
	}
	l, err := parse(text)
	if err != nil {
		return nil, problem.New(problem.Failed, "stress-ng: method %s", method).At(t.Near.Name).Because(err)
	}
	return l, nil
}

// samples returns the figures, from the timed runs or, if there are none, from the fixed work.
func (c *cpu) samples(d detail) []test.Sample {
	from, seconds := d.Timed, 0.0
	if c.Seconds == 0 {
		from = d.Work
	}
	rates := make([]float64, len(c.Methods))
	for i, m := range c.Methods {
		rates[i] = from[m].RealRate
		if c.Clock == cpuTime {
			rates[i] = from[m].CPURate
		}
	}
	all := []test.Sample{{Figure: score, Value: geometricMean(rates)}}
	if c.Work > 0 {
		for _, m := range c.Methods {
			seconds += d.Work[m].Wall
		}
		all = append(all, test.Sample{Figure: wall, Value: seconds})
	}
	for i, m := range c.Methods {
		all = append(all, test.Sample{Figure: m, Value: rates[i]})
	}
	return all
}
