package releaseverb

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/completion"
	"orrery/internal/cli/table"
	"orrery/internal/cli/value"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/overdue"
	"orrery/internal/control/register"
	"orrery/internal/control/twins"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// Twin returns the command `orrery twin`.
func Twin(call *verb.Call) *cobra.Command {
	c := verb.Group("twin", "Manage twins: isolated copies of a site with its addresses", twinCreate(call),
		twinList(call), twinDestroy(call))
	c.Long = `Twins are copies of a site with the same names, addresses, MACs and roles, on
isolated networks of their own. They share all layers with the original. Every
command works on a twin with --twin NAME.`
	for _, verb := range []struct{ name, use, short, example string }{
		{"status", "status TWIN [SELECTOR...]", "Show the state of a twin's nodes", "status dev1"},
		{"shell", "shell TWIN NODE [-- COMMAND...]", "Open a terminal in a node of a twin, or run one command there",
			"shell dev1 portal"},
		{"exec", "exec TWIN SELECTOR... -- COMMAND...", "Run a command on many nodes of a twin at once",
			"exec dev1 'receptor*' -- uptime"},
		{"forward", "forward TWIN NODE:PORT", "Forward a loopback port of this host to a port of a twin",
			"forward dev1 portal:80"},
	} {
		c.AddCommand(twinVerb(verb.name, verb.use, verb.short, verb.example))
	}
	return c
}

// twinVerb returns a verb for a twin that is named by the first argument instead of by --twin.
func twinVerb(name, use, short, example string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  orrery twin " + example, Args: cobra.MinimumNArgs(1), DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "--help" || args[0] == "-h" {
				return c.Help()
			}
			shared, rest := completion.SharedFlags(args)
			if len(rest) == 0 {
				return problem.New(problem.Usage, "no twin given").Try("orrery twin %s", use)
			}
			line := append(shared, "--twin", rest[0], name)
			root := c.Root() // its flags were not parsed yet
			root.SetArgs(append(line, rest[1:]...))
			return root.ExecuteContext(c.Context())
		},
	}
}

// A twinFlags is a new twin as described by flags.
type twinFlags struct {
	twin.Options
	only                    []string
	scale, volumes, release string
	expires                 time.Duration
}

// record returns the record of the new twin of a site in a directory.
func (n *twinFlags) record(original *site.Site, dir string) (r twin.Record, err error) {
	if n.Owner == "" {
		n.Owner = control.UserName()
	}
	if err := value.Scale(&n.Options, n.scale); err != nil {
		return r, err
	}
	if n.release != "" {
		if n.Release, err = register.ReleaseNumber(original, n.release); err != nil {
			return r, err
		}
	}
	if n.Only, err = control.SelectedNames(original, n.only); err != nil {
		return r, err
	}
	if n.volumes != site.CopyEmpty && n.volumes != site.CopySnapshot {
		// the program that fills them may run in another directory
		if n.volumes, err = filepath.Abs(n.volumes); err != nil {
			return r, err
		}
	}
	r = twin.Record{Site: original.Name, Dir: dir, Options: n.Options, Volumes: n.volumes,
		Created: time.Now().UTC().Truncate(time.Second)}
	if n.expires > 0 {
		r.Expires = r.Created.Add(n.expires)
	}
	return r, nil
}

func twinCreate(call *verb.Call) *cobra.Command {
	var n twinFlags
	c := &cobra.Command{
		Use:   "create SITE TWIN",
		Short: "Create a twin of a site and bring it up",
		Long: `Creates a twin of a site and brings it up. Name the site by its directory or,
if it is up on this host, by its name. Roles and nodes that name a simulator
("simulated_by") are replaced by it. A twin reaches the outside only with
--nat, and can never reach the original.

With --volumes snapshot, volumes begin as copies of the original's. A script is
called with volume, node and directory, to fill the volume.`,
		Example: "  orrery twin create karoo dev1 --scale cpus=0.5,memory=0.5 --expires 8h",
		Args:    cobra.ExactArgs(2),
		RunE: call.AsRoot(func(c *cobra.Command, args []string) error {
			original, dir, err := twins.LoadOriginal(call.Session, args[0])
			if err != nil {
				return err
			}
			n.Name = args[1]
			r, err := n.record(original, dir)
			if err != nil {
				return err
			}
			if err := twins.LimitForMember(call.Session, original, &r); err != nil {
				return err
			}
			s, result, err := twins.Create(c.Context(), call.Session, r)
			call.Session.SiteDir, call.Session.Twin = r.Dir, n.Name
			return verb.PrintUp(c.Context(), call.Session, call.Out, s, nil, result, err)
		}),
	}
	f := c.Flags()
	f.StringArrayVar(&n.only, "only", nil, "include only the nodes of this `selector` (repeatable)")
	f.StringVar(&n.scale, "scale", "", "scale the limits of nodes, as in cpus=0.5,memory=0.5")
	f.StringVar(&n.volumes, "volumes", site.CopyEmpty,
		`volumes begin "empty", as a "snapshot" or from this script`)
	f.StringVar(&n.release, "release", "", `copy this release of the site; "next": the highest`)
	f.StringVar(&n.Owner, "owner", "", "owner of the twin (default: you)")
	f.DurationVar(&n.expires, "expires", 0, "destroy the twin after this time")
	f.BoolVar(&n.Collapse, "collapse", false, "put all roles on one node")
	f.BoolVar(&n.NAT, "nat", false, "let the twin's nodes reach the outside")
	return c
}

func twinList(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use: "ls", Short: "List the twins on this host and on the hosts of the site",
		Example: "  orrery twin ls",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, silent, err := twins.List(c.Context(), call.Session)
			if err != nil {
				return err
			}
			err = table.List(call.Out, all, "TWIN\tSITE\tOWNER\tNODES\tRELEASE\tCREATED\tEXPIRES\tHOSTS\tDIRECTORY",
				func(t *hosts.Twin) []any {
					expires := "-"
					if !t.Expires.IsZero() {
						expires = table.Minute(t.Expires)
						if _, ok := overdue.UnwatchedExpiry(call.Session, t.Key()); ok {
							expires += " (not scheduled)"
						}
					}
					return []any{t.Options.Name, t.Site, t.Options.Owner, fmt.Sprintf("%d of %d run", t.Running, t.Nodes),
						site.ReleaseName(t.Options.Release), table.Minute(t.Created), expires, cmp.Or(strings.Join(t.On, "+"), "-"),
						t.Dir}
				})
			return cmp.Or(err, silent)
		},
	}
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}

func twinDestroy(call *verb.Call) *cobra.Command {
	here := false
	c := &cobra.Command{
		Use: "destroy TWIN", Short: "Destroy a twin with its data and records",
		Example: "  orrery twin destroy dev1",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if here {
				return twins.DestroyLocal(c.Context(), call.Session, args[0])
			}
			return twins.Destroy(c.Context(), call.Session, args[0])
		},
	}
	c.Flags().BoolVar(&call.Session.WaitForLocks, "wait", false, "wait until no other process is changing the twin")
	value.EndingFlags(c, &call.Session.Ending)
	c.Flags().BoolVar(&here, "here", false,
		"destroy only this host's part of a twin, named SITE.TWIN")
	call.WithoutFlag(c)
	return c
}
