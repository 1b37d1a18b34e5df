package report

import (
	"fmt"
	"strings"

	"orrery/internal/text/pattern"
)

// shellSafe matches names that a shell does not interpret.
var shellSafe = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// RerunCommands returns the commands that create and check this report.
func (r *Report) RerunCommands() []string {
	id := r.Bundle.ID
	if !shellSafe().MatchString(id) {
		id = "BUNDLE" // an untrusted name must not get into a command that the user copies into a shell
	}
	only := ""
	if part := r.Bundle.Part; len(part) > 0 {
		for _, name := range part {
			if !shellSafe().MatchString(name) {
				part = []string{"TESTS"}
			}
		}
		only = " --only " + strings.Join(part, ",")
	}
	return []string{
		fmt.Sprintf("orrery lab check %s     # recomputes every figure from the raw samples", id),
		fmt.Sprintf("orrery lab run %s/experiment.toml%s     # measures again", id, only),
		fmt.Sprintf("orrery lab compare %s NEW     # compares both", id),
	}
}
