package value

import (
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/plan"
	"orrery/internal/problem"
)

// EndingFlags adds flags that say how running nodes are ended.
func EndingFlags(c *cobra.Command, e *plan.StopMode) *cobra.Command {
	c.Flags().BoolVar(&e.Hard, "hard", false, "stop nodes at once, as a power cut would; may lose data")
	c.Flags().Var((*timeout)(&e.Timeout), "timeout",
		"kill nodes not shut down after this `time` (default 1m30s)")
	c.MarkFlagsMutuallyExclusive("hard", "timeout")
	return c
}

// timeout is the time that nodes have to shut down.
type timeout time.Duration

// Set parses a duration.
func (t *timeout) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = problem.New(problem.Usage, "the time must be longer than 0").Try("--hard stops nodes at once")
	}
	*t = timeout(d)
	return err
}

func (t *timeout) String() string {
	if *t == 0 {
		return ""
	}
	return time.Duration(*t).String()
}

// Type returns the kind of value for help texts.
func (t *timeout) Type() string { return "duration" }
