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

// ProductionFlag adds a flag by which the user agrees in advance to disturb production.
func (call *Call) ProductionFlag(c *cobra.Command) {
	call.AgreeFlag(c, control.Production, "the site's `name`, to change production without asking")
}

var consentFlags = map[control.Consent]string{
	control.Production: "yes-production", control.Volumes: "yes-volumes", control.Replace: "yes-replace",
	control.Paths: "yes-paths", control.Restore: "yes-restore", control.Moves: "yes-moves",
	control.Forget: "yes-forget",
}

// An asker asks the user to type the name of the site, unless it was given in advance.
type asker struct {
	in    io.Reader
	err   io.Writer
	given consent
}

// Ask asks on the terminal.
func (a asker) Ask(q control.Question) (asked bool, err error) {
	if given := a.given[q.About]; given != nil && *given == q.Site {
		return false, nil
	}
	refused := problem.New(problem.Refused, "not confirmed; nothing was done").
		Try("type %s when asked, or use --%s %s", q.Site, consentFlags[q.About], q.Site)
	if f, ok := a.in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return false, refused
	}
	if q.LetGo != nil {
		q.LetGo()
	}
	fmt.Fprintf(a.err, "%s\nType its name to continue:  ", q.Why)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != q.Site {
		return true, refused
	}
	return true, nil
}
