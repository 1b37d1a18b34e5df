package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"orrery/internal/control/members"
)

// asMember is what packaging/orrery-member says before the arguments of whoever calls it by sudo.
const asMember = "as-member"

// mayCall refuses a member what is not for members. It is run before every verb.
func (a *app) mayCall(c *cobra.Command, args []string) error {
	if a.Member == nil {
		return nil
	}
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	var flags []string
	c.Flags().Visit(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	return members.MayCall(c.Context(), &a.Session, verb, flags, args)
}
