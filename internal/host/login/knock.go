package login

import (
	"context"
	"errors"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// attemptTimeout limits one attempt to log in. Data that was sent before the machine listened is lost, so
// an attempt may never get an answer.
const attemptTimeout = 20 * time.Second

// ConnectWhenReady logs in to a machine as soon as it accepts the login.
func (d Server) ConnectWhenReady(ctx context.Context) (*Client, error) {
	for {
		c, err := d.connectOnce(ctx)
		var not *NotReadyError
		var p *problem.Problem
		switch {
		case err == nil:
			return c, nil
		case errors.As(err, &p) && !errors.As(err, &not):
			return nil, err
		}
		if host.Sleep(ctx, time.Second) != nil {
			return nil, err
		}
	}
}

func (d Server) connectOnce(ctx context.Context) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return d.Connect(ctx)
}
