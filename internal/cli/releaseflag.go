package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"orrery/internal/problem"
)

// releaseFlag lets a verb work with nodes of a release that is not live.
func (a *app) releaseFlag(c *cobra.Command) {
	c.Flags().Var((*releaseValue)(&a.Release), "release", "use the nodes of this release `number`, live or in quarantine (default: the live nodes)")
}

// A releaseValue is the value of --release. That it is not said has no number, and none is shown as the default.
type releaseValue int

func (r *releaseValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err == nil && n < 0 {
		err = problem.New(problem.Usage, "a release has no number below 0")
	}
	*r = releaseValue(n)
	return err
}

func (r *releaseValue) String() string {
	if *r < 0 {
		return ""
	}
	return strconv.Itoa(int(*r))
}

func (r *releaseValue) Type() string { return "int" }
