package cli

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

func (a *app) twinCreate() *cobra.Command {
	var only []string
	var scale, volumes, release string
	var expires time.Duration
	var o twin.Options
	c := &cobra.Command{
		Use:   "create SITE TWIN",
		Short: "Make a twin of a site and bring it up",
		Long: `Makes a twin of a site and brings it up. Name the site by its directory or, if it is up on this host, by its name. Roles and nodes that name a
simulator ("simulated_by") are replaced by it. A twin has no way out unless you give --nat, and can never reach the original.`,
		Example: "  orrery twin create karoo dev1 --scale cpus=0.5,memory=0.5 --expires 8h",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.Allowed(); err != nil {
				return err
			}
			original, dir, err := a.Original(args[0])
			if err != nil {
				return err
			}
			o.Name = args[1]
			if o.Owner == "" {
				o.Owner = control.Who()
			}
			if err := scaled(&o, scale); err != nil {
				return err
			}
			if release != "" {
				if o.Release, err = register.ReleaseNumber(original, release); err != nil {
					return err
				}
			}
			if o.Only, err = control.ChosenNames(original, only); err != nil {
				return err
			}
			if volumes != site.Empty && volumes != site.Snapshot {
				if volumes, err = filepath.Abs(volumes); err != nil { // whoever fills them may be elsewhere
					return err
				}
			}
			r := register.TwinRecord{Site: original.Name, Dir: dir, Options: o, Volumes: volumes, Created: time.Now().UTC().Truncate(time.Second)}
			if expires > 0 {
				r.Expires = r.Created.Add(expires)
			}
			if err := a.Grant(original, &r); err != nil {
				return err
			}
			s, result, err := a.CreateTwin(c.Context(), r)
			if err != nil {
				return err
			}
			b := a.another()
			b.SiteDir, b.Twin = r.Dir, o.Name
			return b.tellUp(c.Context(), s, nil, result)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&only, "only", nil, "only the nodes that this `selector` means; may be repeated")
	f.StringVar(&scale, "scale", "", "share of the limits of nodes, as in cpus=0.5,memory=0.5")
	f.StringVar(&volumes, "volumes", site.Empty, `what volumes begin with: "empty", "snapshot" of the original's, or the path of a script, called with volume, node and directory`)
	f.StringVar(&release, "release", "", `the site as this release makes it; "next": the highest`)
	f.StringVar(&o.Owner, "owner", "", "who owns it (default: you)")
	f.DurationVar(&expires, "expires", 0, "destroy it after this time")
	f.BoolVar(&o.Collapse, "collapse", false, "put all roles on one node")
	f.BoolVar(&o.NAT, "nat", false, "let its nodes reach the outside")
	return c
}

// scaled reads --scale.
func scaled(o *twin.Options, text string) error {
	if text == "" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		factor, err := strconv.ParseFloat(value, 64)
		to := map[string]*float64{"cpus": &o.Cpus, "memory": &o.Memory}[name]
		if to == nil || err != nil || factor <= 0 {
			return problem.New(problem.Usage, "--scale %s", text).Try("such as cpus=0.5,memory=0.5")
		}
		*to = factor
	}
	return nil
}
