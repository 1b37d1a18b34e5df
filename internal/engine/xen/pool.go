package xen

import (
	"context"

	"orrery/internal/host/xl"
	"orrery/internal/observe"
)

// Pool returns Xen's memory, of which Dom0's kernel knows only its own part.
func (e *Engine) Pool(ctx context.Context) *observe.MemoryPool {
	if e.lacks() != nil {
		return nil
	}
	info, err := xl.ReadInfo(ctx)
	if err != nil || info.Total == 0 {
		return nil // starting a guest will fail for the same reason, and report it
	}
	return &observe.MemoryPool{Total: info.Total, Free: info.Free}
}
