package roster

import (
	"context"
	"time"

	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Undrain lets nodes come to a host again. It tells whether they were kept away.
func Undrain(ctx context.Context, c *control.Session, s *site.Site, name string) (was bool, err error) {
	h, f, err := only(ctx, c, s, name)
	if err != nil {
		return false, err
	}
	letGo, err := c.Hold(ctx, s, f)
	if err != nil {
		return false, err
	}
	defer letGo()
	seen, err := c.Seen(ctx, f)
	if err != nil || seenOf(seen, name).Drained == nil {
		return false, err
	}
	return true, h.SetDrained(ctx, nil)
}

// keepAway puts the mark on a host that no node comes to it any more. One that is there stays: it says who has put it there first.
func keepAway(ctx context.Context, c *control.Session, s *site.Site, name string) error {
	h, f, err := only(ctx, c, s, name)
	if err != nil {
		return err
	}
	letGo, err := c.Hold(ctx, s, f)
	if err != nil {
		return err
	}
	defer letGo()
	seen, err := c.Seen(ctx, f)
	if err != nil || seenOf(seen, name).Drained != nil {
		return err
	}
	return h.SetDrained(ctx, &observe.Drain{Who: control.Who(), Since: time.Now().UTC().Truncate(time.Second)})
}

// leaving decides where the nodes of a host go that is drained.
func leaving(s *site.Site, seen []observe.Host, releases map[int]*site.Site, name string) (place.Moves, error) {
	live, err := plan.Released(s, seen, releases)
	if err != nil {
		return place.Moves{}, err
	}
	if at := seenOf(seen, name); at.Unknown {
		return place.Moves{}, problem.New(problem.Unable, "nothing is known of host %s", name).Try("see that it answers: orrery host check")
	}
	return place.Leave(live, seen, name)
}

// Drained is a host to which no node comes any more, and what is still to leave it.
type Drained struct {
	Host string `json:"host"`
	place.Moves
}

// Drain keeps nodes away from a host, and tells where those could go that are on it.
func Drain(ctx context.Context, c *control.Session, s *site.Site, name string) (*Drained, error) {
	if err := known(s, name); err != nil {
		return nil, err
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := keepAway(ctx, c, s, name); err != nil {
		return nil, err
	}
	seen, err := c.Seen(ctx, f)
	if err != nil {
		return nil, err
	}
	d := &Drained{Host: name}
	d.Moves, err = leaving(s, seen, f.Releases(), name)
	return d, err
}

// Rebalance proposes which nodes of a site to move, so that groups are spread and hosts are about as full as one another.
func Rebalance(ctx context.Context, c *control.Session, s *site.Site) (place.Moves, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return place.Moves{}, err
	}
	seen, err := c.Seen(ctx, f)
	if err != nil {
		return place.Moves{}, err
	}
	live, err := plan.Released(s, seen, f.Releases())
	if err != nil {
		return place.Moves{}, err
	}
	return place.Rebalance(live, seen)
}
