package cli

import (
	"runtime/metrics"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/problem"
)

// A bound is how much a verb may take that only reads a site directory, which may be a stranger's.
// What is in there has bounds of its own, with better words; this one holds for whatever nobody
// thought of.
type bound struct {
	time   time.Duration
	memory uint64 // bytes
}

// ample is far more than the largest site takes.
var ample = bound{2 * time.Minute, 3 << 30}

// around returns a verb that ends with an error when it takes more. It may have begun to print by
// then, and goes on until the program ends.
func (b bound) around(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
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
				return problem.New(problem.Mistake, "reading the site directory takes more than %v: no site needs that", b.time).
					Try("look at what is in it, or make several sites")
			case <-look.C:
				if inUse() > b.memory {
					return problem.New(problem.Mistake,
						"reading the site directory takes more than %d MiB of memory: no site needs that", b.memory>>20).
						Try("look at what is in it, or make several sites")
				}
			}
		}
	}
}

// inUse is how much memory this program uses, in bytes.
func inUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
