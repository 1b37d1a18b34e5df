package control

import (
	"cmp"
	"context"
	"fmt"

	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/member"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Grant settles what a twin of a member may be.
func (c *Session) Grant(original *site.Site, r *register.TwinRecord) error {
	if c.Member == nil {
		return nil
	}
	w := member.Wish{NAT: r.Options.NAT, Volumes: r.Volumes, Scale: max(r.Options.Cpus, r.Options.Memory)}
	for _, other := range c.Twins() {
		if other.Site == r.Site && other.Options.Owner == c.Member.Name {
			w.Has++
		}
	}
	if !r.Expires.IsZero() {
		w.Expires = r.Expires.Sub(r.Created)
	}
	granted, err := member.MayHave(original.Twins, w)
	r.Expires = r.Created.Add(granted)
	return err
}

// Noted keeps in the journal what a member does in nodes.
func (c *Session) Noted(s *site.Site, do func() error) error {
	if c.Member == nil {
		return do()
	}
	var err error
	unnoted := c.noted(s, c.Command, func() string {
		if err = do(); problem.Exit(err) != 0 {
			return fmt.Sprintf("exit status %d", problem.Exit(err))
		}
		return "done"
	})
	return cmp.Or(err, unnoted)
}

// barred is the way into a node that is not for members.
type barred struct {
	host.Runner
	name string
}

func (b barred) Run(context.Context, host.Command) error {
	return problem.New(problem.Refused, "node %s is privileged, so whoever runs programs in it is root on this host; nothing was done", b.name).
		Try("ask whoever administers this host")
}
