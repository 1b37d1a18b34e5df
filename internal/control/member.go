package control

import (
	"cmp"
	"fmt"

	"orrery/internal/member"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// Grant settles what a twin of a member may be.
func Grant(c *Session, original *site.Site, r *twin.Record) error {
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
func Noted(c *Session, s *site.Site, do func() error) error {
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
