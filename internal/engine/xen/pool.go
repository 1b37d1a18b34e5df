package xen

import (
	"context"

	"orrery/internal/host/xl"
	"orrery/internal/observe"
)

// Pool tells what Xen has of memory: Dom0 knows only its own.
func (e *Engine) Pool(ctx context.Context) *observe.Pool {
	if e.lacks() != nil {
		return nil
	}
	info, err := xl.Tell(ctx)
	if err != nil || info.Total == 0 {
		return nil // what has kept it from telling keeps guests from starting, too, and is told then
	}
	return &observe.Pool{Total: info.Total, Free: info.Free}
}
