package cli

import (
	"runtime/metrics"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/problem"
)

// A bound is the limit on what a verb may use that only reads a site directory, which may be
// untrusted. The site directory has limits of its own, with better messages. This one covers
// everything that those do not.
type bound struct {
	time   time.Duration
	memory uint64 // bytes
}

// siteBound is far more than the largest site needs.
var siteBound = bound{2 * time.Minute, 3 << 30}

// wrap returns a verb that fails if it exceeds the bound. It may have printed something by then,
// and its goroutine continues until the program ends.
func (b bound) wrap(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		done := make(chan error, 1)
		go func() { done <- run(c, args) }()
		end := time.After(b.time)
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case err := <-done:
				return err
			case <-end:
				return problem.New(problem.Mistake, "site directory: reading it takes more than %v", b.time).
					Try("remove what is not part of the site, or split it into several sites")
			case <-look.C:
				if memoryInUse() > b.memory {
					return problem.New(problem.Mistake,
						"site directory: reading it takes more than %d MiB of memory", b.memory>>20).
						Try("remove what is not part of the site, or split it into several sites")
				}
			}
		}
	}
}

// memoryInUse returns how much memory this program uses, in bytes.
func memoryInUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
