package control

import (
	"context"

	"orrery/internal/observe"
	"orrery/internal/plan"
)

// An Operation is a change of a site that a Job carries out. The Job calls the methods in this
// order while it holds the site's lock. Operations that need only Plan embed Plain.
type Operation interface {
	// Plan returns the steps for the observed hosts. If there are none, the Job neither asks nor
	// does anything. Plan may modify seen, for example after a probe.
	Plan(ctx context.Context, seen []observe.Host) (*plan.Plan, error)
	// Confirm asks the caller, through c, for the consent that the plan needs. For asked, see
	// Confirmer.
	Confirm(c *Session, p *plan.Plan) (asked bool, err error)
	// Begin is called before the first step.
	Begin(ctx context.Context) error
	// Commit is called when all steps are done.
	Commit(ctx context.Context) error
}

// A Reverter is an Operation that decides itself what to do after one of its steps has failed.
type Reverter interface {
	Operation
	// Revert returns the steps to take after a plan has failed. Seen is the state of the hosts
	// after the failure.
	Revert(seen []observe.Host, failed *plan.Plan) (*plan.Plan, error)
}

// Plain is embedded in operations that need no consent and have nothing to do before or after their
// steps.
type Plain struct{}

// Confirm asks for nothing.
func (Plain) Confirm(*Session, *plan.Plan) (asked bool, err error) { return false, nil }

// Begin does nothing.
func (Plain) Begin(context.Context) error { return nil }

// Commit does nothing.
func (Plain) Commit(context.Context) error { return nil }

// Steps returns a plain operation whose steps are planned by a function.
func Steps(planned func(seen []observe.Host) (*plan.Plan, error)) Operation {
	return steps{planned: planned}
}

type steps struct {
	Plain
	planned func([]observe.Host) (*plan.Plan, error)
}

func (s steps) Plan(_ context.Context, seen []observe.Host) (*plan.Plan, error) {
	return s.planned(seen)
}
