package roster

import (
	"context"
	"fmt"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/nodes"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Undrain allows nodes on a host again. It reports whether the host was drained.
func Undrain(ctx context.Context, c *control.Session, s *site.Site, name string) (drained bool, err error) {
	h, f, err := withOnlyHost(ctx, c, s, name)
	if err != nil {
		return false, err
	}
	letGo, err := c.LockSite(ctx, s, f)
	if err != nil {
		return false, err
	}
	defer letGo()
	seen, err := c.Observe(ctx, f)
	if err != nil || observedHost(seen, name).Drained == nil {
		return false, err
	}
	return true, h.State.SetCordoned(ctx, nil)
}

// drainMoves decides where the nodes of a drained host go.
func drainMoves(s *site.Site, f *apply.Fleet, seen []observe.Host, name string) (place.Moves, error) {
	live, err := f.Views().Released(s, seen)
	if err != nil {
		return place.Moves{}, err
	}
	if at := observedHost(seen, name); at.Unknown {
		return place.Moves{}, problem.New(problem.Unable, "the state of host %s is unknown", name).
			Try("check that it answers: orrery host check")
	}
	return place.ProposeDrain(live, seen, name)
}

// Moved is what was proposed to move, and what was moved.
type Moved struct {
	Host string `json:"host,omitempty"` // the host that is drained
	place.Moves
	Moved []nodes.MovedNode `json:"moved"`
}

// ShowMoves displays the proposed moves and their plan before the caller is asked.
type ShowMoves func(place.Moves, *plan.Plan)

// A Drain keeps nodes away from a host.
type Drain struct {
	Host string
	Stay bool // existing nodes stay, and the caller is not asked about them
	Show ShowMoves
}

// Run marks the host as drained, and moves its nodes to other hosts if the caller agrees. It
// reports nodes that cannot be moved.
func (d Drain) Run(ctx context.Context, c *control.Session, s *site.Site) (*Moved, error) {
	if err := checkKnown(s, d.Host); err != nil {
		return nil, err
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	h, ok := f.Host(d.Host)
	if !ok {
		return nil, problem.New(problem.Usage, "host %s is left out, and cannot be drained", d.Host).
			Try("omit --without")
	}
	mark := func() error {
		current, err := h.State.Cordoned(ctx)
		if err != nil || current != nil { // keep the mark of the user who drained it first
			return err
		}
		return h.State.SetCordoned(ctx, &observe.Drain{Who: control.UserName(),
			Since: time.Now().UTC().Truncate(time.Second)})
	}
	m := &moveOp{Moved: Moved{Host: d.Host, Moved: []nodes.MovedNode{}}, show: d.Show,
		propose: func(seen []observe.Host) (place.Moves, error) { return drainMoves(s, f, seen, d.Host) }, before: mark}
	if d.Stay {
		m.show = nil
	}
	ran, err := m.run(ctx, c, s, f)
	if err != nil || ran {
		return &m.Moved, err
	}
	letGo, err := c.LockSite(ctx, s, f)
	if err != nil {
		return nil, err
	}
	defer letGo()
	return &m.Moved, mark()
}

// Rebalance moves nodes so that groups are spread and hosts are about equally full, if the caller
// agrees.
func Rebalance(ctx context.Context, c *control.Session, s *site.Site, show ShowMoves) (*Moved, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	m := &moveOp{Moved: Moved{Moved: []nodes.MovedNode{}}, show: show, propose: proposeMoves(s, f)}
	_, err = m.run(ctx, c, s, f)
	return &m.Moved, err
}

// ProposeMoves returns the moves of Rebalance without carrying them out.
func ProposeMoves(ctx context.Context, c *control.Session, s *site.Site) (place.Moves, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return place.Moves{}, err
	}
	seen, err := c.Observe(ctx, f)
	if err != nil {
		return place.Moves{}, err
	}
	return proposeMoves(s, f)(seen)
}

func proposeMoves(s *site.Site, f *apply.Fleet) func([]observe.Host) (place.Moves, error) {
	return func(seen []observe.Host) (place.Moves, error) {
		live, err := f.Views().Released(s, seen)
		if err != nil {
			return place.Moves{}, err
		}
		return place.Rebalance(live, seen)
	}
}

// A moveOp moves nodes that were chosen automatically.
type moveOp struct {
	*nodes.MoveOp
	Moved
	show    ShowMoves // nil if nothing will be moved
	propose func([]observe.Host) (place.Moves, error)
	before  func() error // called before the first step, or nil
}

// run carries out the moves that are proposed for the current state, after the caller has agreed.
// It reports whether there was something to move.
func (m *moveOp) run(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet) (bool, error) {
	m.MoveOp = &nodes.MoveOp{Session: c, Site: s, Fleet: f, To: map[string]string{}}
	r, err := m.Job(m).Run(ctx)
	if r != nil {
		m.Moved.Moved = append(m.Moved.Moved, nodes.MovedNodes(r)...)
	}
	return r != nil || len(m.To) > 0, err
}

func (m *moveOp) Plan(ctx context.Context, seen []observe.Host) (p *plan.Plan, err error) {
	if m.Moves, err = m.propose(seen); err != nil {
		return nil, err
	}
	clear(m.To)
	if m.show != nil {
		for _, move := range m.Moves.Moves {
			m.To[move.Node] = move.To
		}
	}
	if len(m.To) == 0 {
		return &plan.Plan{Site: m.Site.Name}, nil
	}
	return m.MoveOp.Plan(ctx, seen)
}

func (m *moveOp) Confirm(c *control.Session, p *plan.Plan) (asked bool, err error) {
	m.show(m.Moves, p)
	why := fmt.Sprintf("%s would move to other hosts of %s. Each is frozen for a moment.",
		humanize.Plural(len(m.To), "node"), m.Site.Name)
	return c.Confirmer.Ask(control.Question{About: control.Moves, Site: m.Site.Name, Why: why})
}

func (m *moveOp) Begin(context.Context) error {
	if m.before == nil {
		return nil
	}
	return m.before()
}
