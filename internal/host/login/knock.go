package login

import (
	"context"
	"errors"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// knocking limits one attempt to log in. Data that was sent before the machine listened is lost, so
// an attempt may never get an answer.
const knocking = 20 * time.Second

// Knock logs in to a machine as soon as it accepts the login.
func (d Door) Knock(ctx context.Context) (*Client, error) {
	for {
		c, err := d.once(ctx)
		var not *NotYet
		var p *problem.Problem
		switch {
		case err == nil:
			return c, nil
		case errors.As(err, &p) && !errors.As(err, &not):
			return nil, err
		}
		if host.Pause(ctx, time.Second) != nil {
			return nil, err
		}
	}
}

func (d Door) once(ctx context.Context) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, knocking)
	defer cancel()
	return d.Enter(ctx)
}
