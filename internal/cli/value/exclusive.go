package value

import (
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"orrery/internal/problem"
)

// Exclusive returns a Usage problem if mutually exclusive flags of a command are set. Cobra also
// checks that, but without a cure, and only after everything else that runs before a command.
func Exclusive(c *cobra.Command) error {
	err := c.ValidateFlagGroups()
	if err == nil {
		return nil
	}
	what := err.Error()
	if set := regexp.MustCompile(`\[(\S+) (\S+)\] were all set$`).FindStringSubmatch(what); set != nil {
		what = fmt.Sprintf("--%s and --%s cannot be used together", set[1], set[2])
	}
	return problem.New(problem.Usage, "%s", what).Try("%s --help", c.CommandPath())
}
