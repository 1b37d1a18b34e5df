// Package value has the types of flags that are not simple strings or numbers.
package value

import (
	"errors"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// A Batch is the value of --batch.
type Batch site.Batch

// Set parses the value.
func (b *Batch) Set(text string) error {
	parsed, ok := site.ParseBatch(text)
	if !ok {
		return errors.New(`use a number of nodes from 1, or a share from 1% to 100%`)
	}
	*b = Batch(parsed)
	return nil
}

// Type returns the kind of value for help texts.
func (b *Batch) Type() string { return "NODES" }

func (b *Batch) String() string {
	if *b == (Batch{}) {
		return ""
	}
	return site.Batch(*b).String()
}

// A Release is the value of --release. If the flag is not set, it has no number, and help texts
// show no default.
type Release int

// Set parses the value.
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

// Type returns the kind of value for help texts.
func (r *Release) Type() string { return "int" }

// Scale parses the value of --scale.
func Scale(o *twin.Options, text string) error {
	if text == "" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		factor, err := strconv.ParseFloat(value, 64)
		to := map[string]*float64{"cpus": &o.Cpus, "memory": &o.Memory}[name]
		if to == nil || err != nil || factor <= 0 {
			return problem.New(problem.Usage, "--scale %s: not a list of factors", text).
				Try("use a value such as cpus=0.5,memory=0.5")
		}
		*to = factor
	}
	return nil
}
