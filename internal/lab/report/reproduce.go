package report

import (
	"fmt"
	"strings"

	"orrery/internal/text/pattern"
)

// harmless is a name that a shell takes as it is.
var harmless = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Reproduce are the commands that make and check this report.
func (r *Report) Reproduce() []string {
	id := r.Bundle.ID
	if !harmless().MatchString(id) {
		id = "BUNDLE" // what is to be copied into a shell is no place for what somebody may have written
	}
	only := ""
	if part := r.Bundle.Part; len(part) > 0 {
		for _, name := range part {
			if !harmless().MatchString(name) {
				part = []string{"TESTS"}
			}
		}
		only = " --only " + strings.Join(part, ",")
	}
	return []string{
		fmt.Sprintf("orrery lab check %s     # recomputes every figure from the raw samples", id),
		fmt.Sprintf("orrery lab run %s/experiment.toml%s     # measures again", id, only),
		fmt.Sprintf("orrery lab compare %s NEW     # sets both side by side", id),
	}
}
