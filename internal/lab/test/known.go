package test

import (
	"context"
	"regexp"

	"orrery/internal/lab/place"
	"orrery/internal/problem"
)

// Known runs a program in a place and returns the submatches of pattern in its output. It returns
// an error if the program cannot be run or the pattern does not match, which means that it is
// another program than expected. The cure says what the layer must contain.
func Known(ctx context.Context, p *place.Place, pattern *regexp.Regexp, cure, program string,
	args ...string) ([]string, error) {
	out, err := p.Output(ctx, program, args...)
	if err != nil {
		return nil, problem.New(problem.Unable, "%s cannot be run", program).At(p.Name).Because(err).
			Try("the layer needs %s", cure)
	}
	found := pattern.FindStringSubmatch(string(out))
	if found == nil {
		return nil, problem.New(problem.Unable, "%s is an unsupported program or version: it prints %.60q", program, out).
			At(p.Name).
			Try("the layer needs %s", cure)
	}
	return found, nil
}

// NeedFar returns an error unless the trial has a far end with a valid address.
func (t *Trial) NeedFar() error {
	if t.Far == nil || !t.Far.Address.IsValid() {
		return problem.New(problem.Unable, "the test needs a far end").At(t.Near.Name)
	}
	return nil
}
