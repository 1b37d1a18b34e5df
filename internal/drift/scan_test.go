package drift

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestRound checks that nodes that do not answer delay neither other nodes nor the round beyond one
// limit, even if their looks ignore the context.
func TestRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var round Scan
		never := make(chan struct{})
		defer close(never)
		for i := range 32 {
			round = append(round, probe{i, 50 * time.Millisecond, func(context.Context) error { <-never; return nil }})
		}
		round = append(round, probe{32, time.Second, func(context.Context) error { return nil }},
			probe{33, time.Second, func(context.Context) error { return errors.New("status 1") }},
			probe{34, 50 * time.Millisecond, func(ctx context.Context) error {
				<-ctx.Done()
				return errors.New("tcp 80: no answer")
			}})
		began := time.Now()
		wrong := round.Run(t.Context())
		if took := time.Since(began); took != probeGrace+50*time.Millisecond {
			t.Errorf("a round took %s", took)
		}
		if len(wrong) != 34 || wrong[0] == nil || wrong[0].Error() != "no answer within 50ms" || wrong[32] != nil ||
			wrong[33].Error() != "status 1" || wrong[34].Error() != "tcp 80: no answer" {
			t.Errorf("wrong are %v", wrong)
		}
	})
}
