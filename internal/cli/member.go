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
	// asMember is what packaging/orrery-member says before the arguments of whoever calls it by sudo.
	asMember = "as-member"
	// ofMember is what this program then says to itself, on the other side of the relay.
	ofMember = "of-member"
)

// relayed runs a member's call on the other side of a relay.
func relayed(args []string, errs io.Writer) int {
	status, err := members.Relay(append([]string{ofMember}, args...))
	if err != nil {
		verb.PrintError(errs, err)
		return problem.Exit(err)
	}
	return status
}

// unshared returns a member's input. A file that he may serve himself is read here and by no
// program in a node: who reads it cannot be killed before the member likes.
func unshared(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok || host.Killable(f) {
		return in
	}
	return struct{ io.Reader }{in}
}

// mayCall refuses a member what is not for members. It is run before every verb.
func mayCall(session *control.Session, c *cobra.Command, args []string) error {
	if session.Member == nil {
		return nil
	}
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	var flags []string
	c.Flags().Visit(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	return members.MayCall(c.Context(), session, verb, flags, args)
}
