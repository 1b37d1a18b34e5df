package verb

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"orrery/internal/control"
	"orrery/internal/problem"
)

// consent maps kinds of consent to the site name that was given in advance by a flag.
type consent map[control.Consent]*string

// AgreeFlag adds a flag by which the user agrees in advance.
func (call *Call) AgreeFlag(c *cobra.Command, about control.Consent, usage string) {
	if call.consent[about] == nil {
		call.consent[about] = new(string)
	}
	c.Flags().StringVar(call.consent[about], consentFlags[about], "", usage)
}

// YesFlag adds a flag by which the user agrees in advance, unless the site is in production.
func (call *Call) YesFlag(c *cobra.Command) {
	c.Flags().BoolVar(call.yes, "yes", false, "agree without being asked, unless in production")
}

// ProductionFlag adds a flag by which the user agrees in advance to disturb production.
func (call *Call) ProductionFlag(c *cobra.Command) {
	call.AgreeFlag(c, control.Production, "the site's `name`, to change production without asking")
}

var consentFlags = map[control.Consent]string{
	control.Production: "yes-production", control.Volumes: "yes-volumes", control.Replace: "yes-replace",
	control.Paths: "yes-paths", control.Restore: "yes-restore", control.Moves: "yes-moves",
	control.Forget: "yes-forget",
}

// An asker asks the user to type the name of the site, unless it was given in advance. If only data
// outside volumes of a site that is not in production would be lost, a yes is enough.
type asker struct {
	in    io.Reader
	err   io.Writer
	given consent
	yes   *bool
}

// Ask asks on the terminal.
func (a asker) Ask(q control.Question) (asked bool, err error) {
	if given := a.given[q.About]; given != nil && *given == q.Site || q.Plain && *a.yes {
		return false, nil
	}
	if f, ok := a.in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		if q.About == control.Loss { // scripts go on
			return false, nil
		}
		return false, a.refusal(q)
	}
	if q.LetGo != nil {
		q.LetGo()
	}
	prompt := "Type its name to continue:  "
	if q.About == control.Loss {
		prompt = "Continue? [y/N]  "
	}
	fmt.Fprintf(a.err, "%s\n%s", q.Why, prompt)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil || !agrees(strings.TrimSpace(answer), q) {
		return true, a.refusal(q)
	}
	return true, nil
}

// agrees reports whether an answer agrees to what was asked.
func agrees(answer string, q control.Question) bool {
	if q.About == control.Loss {
		answer = strings.ToLower(answer)
		return answer == "y" || answer == "yes"
	}
	return answer == q.Site
}

// refusal returns the error that the user has not agreed.
func (a asker) refusal(q control.Question) error {
	p := problem.New(problem.Refused, "not confirmed; nothing was done")
	switch {
	case q.About == control.Loss:
		return p.Try("answer y when asked, or use --yes")
	case q.Plain:
		return p.Try("type %s when asked, or use --yes", q.Site)
	}
	return p.Try("type %s when asked, or use --%s %s", q.Site, consentFlags[q.About], q.Site)
}
