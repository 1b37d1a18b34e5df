package control

import (
	"context"

	"orrery/internal/observe"
	"orrery/internal/plan"
)

// An Operation is a change of a site that a Job carries out. Its methods are called in this order,
// while the site is locked; embed Plain for those that have nothing to do.
type Operation interface {
	// Plan returns the steps for the hosts as they are; none: nothing is asked or done. Seen may be
	// changed, as by a probe.
	Plan(ctx context.Context, seen []observe.Host) (*plan.Plan, error)
	// Confirm asks the caller, by c, for what he has to agree to. Asked reports whether somebody was
	// waited for, see Asker.
	Confirm(c *Session, p *plan.Plan) (asked bool, err error)
	// Begin is called before the first step.
	Begin(ctx context.Context) error
	// Commit is called when all steps are done.
	Commit(ctx context.Context) error
}

// A Reverter is an Operation that knows what is to be done if one of its steps failed.
type Reverter interface {
	Operation
	// Revert returns the steps for the hosts as they are after a plan has failed.
	Revert(seen []observe.Host, failed *plan.Plan) (*plan.Plan, error)
}

// Plain is of operations that ask for nothing, and do nothing but their steps.
type Plain struct{}

// Confirm asks for nothing.
func (Plain) Confirm(*Session, *plan.Plan) (asked bool, err error) { return false, nil }

// Begin does nothing.
func (Plain) Begin(context.Context) error { return nil }

// Commit does nothing.
func (Plain) Commit(context.Context) error { return nil }

// Steps returns a plain operation with the steps that a function plans.
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
