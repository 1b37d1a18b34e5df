// Package value has the types of flags that are not plain words or numbers.
package value

import (
	"errors"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// A Batch is what is said of batches on the command line.
type Batch site.Batch

// Set takes what was said.
func (b *Batch) Set(text string) error {
	parsed, ok := site.ParseBatch(text)
	if !ok {
		return errors.New(`a number of nodes from 1, or a share from 1% to 100%`)
	}
	*b = Batch(parsed)
	return nil
}

// Type is what stands for it in a help text.
func (b *Batch) Type() string { return "NODES" }

func (b *Batch) String() string {
	if *b == (Batch{}) {
		return ""
	}
	return site.Batch(*b).String()
}

// A Release is the value of --release. That it is not said has no number, and none is shown as the default.
type Release int

// Set takes what was said.
func (r *Release) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err == nil && n < 0 {
		err = problem.New(problem.Usage, "a release number cannot be negative")
	}
	*r = Release(n)
	return err
}

func (r *Release) String() string {
	if *r < 0 {
		return ""
	}
	return strconv.Itoa(int(*r))
}

// Type is what stands for it in a help text.
func (r *Release) Type() string { return "int" }

// Scale reads --scale.
func Scale(o *twin.Options, text string) error {
	if text == "" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		factor, err := strconv.ParseFloat(value, 64)
		to := map[string]*float64{"cpus": &o.Cpus, "memory": &o.Memory}[name]
		if to == nil || err != nil || factor <= 0 {
			return problem.New(problem.Usage, "--scale %s", text).Try("such as cpus=0.5,memory=0.5")
		}
		*to = factor
	}
	return nil
}
