package cli

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/members"
	"orrery/internal/host"
	"orrery/internal/problem"
)

const (
	// asMember is the argument that packaging/orrery-member inserts before the caller's arguments.
	asMember = "as-member"
	// ofMember is the argument of the process that the relay starts.
	ofMember = "of-member"
)

// runRelayed runs a member's call in a process behind a relay.
func runRelayed(args []string, errs io.Writer) int {
	status, err := members.Relay(append([]string{ofMember}, args...))
	if err != nil {
		verb.PrintError(errs, err)
		return problem.ExitCode(err)
	}
	return status
}

// isolateInput returns a member's input. If it is a file that the member may serve, this process reads
// it, and no program in a node does. A process that reads such a file cannot be killed until the
// member lets it.
func isolateInput(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok || host.Killable(f) {
		return in
	}
	return struct{ io.Reader }{in}
}

// checkMayCall returns an error if a member may not call the verb. It runs before every verb.
func checkMayCall(session *control.Session, c *cobra.Command, args []string) error {
	if session.Member == nil {
		return nil
	}
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	var flags []string
	c.Flags().Visit(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	return members.MayCall(c.Context(), session, verb, flags, args)
}
