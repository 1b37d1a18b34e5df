package twin

import (
	"math"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/pattern"
)

// Options describe how a twin differs from the original.
type Options struct {
	Name     string
	Only     []string // names of the nodes that it has, or nil for all
	Cpus     float64  // factor for the limits of nodes; 0 means 1
	Memory   float64
	Release  int  // 0 means the site as declared
	Collapse bool // all roles on one node
	NAT      bool // nodes can reach other networks through the gateways
	Owner    string
}

// maxName leaves space for names derived from the twin's name, such as those of directories and
// units.
const maxName = 20

var label = pattern.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// ValidName returns an error if the name of a twin is not legal. A name of digits would be confused
// with a quarantine.
func ValidName(name string) error {
	wrong := problem.New(problem.Usage, "twin name %q is not valid", name)
	switch {
	case len(name) > maxName:
		return wrong.Try("at most %d characters", maxName)
	case !label().MatchString(name):
		return wrong.Try(`lower case letters, digits and "-", such as dev1`)
	case strings.Trim(name, "0123456789") == "":
		return wrong.Try("add a letter: dev%s", name)
	}
	return nil
}

func (o *Options) check(s *site.Site) error {
	if err := ValidName(o.Name); err != nil {
		return err
	}
	if s.Twin != "" {
		return problem.New(problem.Usage, "%s is itself a twin", s.Key()).Try("create it from site %s", s.Name)
	}
	for _, factor := range []float64{o.Cpus, o.Memory} {
		if factor < 0 || math.IsNaN(factor) || math.IsInf(factor, 0) {
			return problem.New(problem.Usage, "limits cannot be scaled by %v", factor).Try("0.5 is half")
		}
	}
	if o.Only != nil && len(o.Only) == 0 {
		return problem.New(problem.Usage, "the twin would have no nodes").Try("choose at least one")
	}
	for _, name := range o.Only {
		if _, ok := s.Node(name); !ok {
			return unknown(s, name)
		}
	}
	return nil
}

func unknown(s *site.Site, name string) error {
	known := make([]string, len(s.Nodes))
	for i := range s.Nodes {
		known[i] = s.Nodes[i].Name
	}
	return problem.New(problem.Mistake, "no node is called %q", name).
		Try("%s", problem.SuggestOr(name, known, "orrery query all lists the nodes"))
}

// includes reports whether the twin has a node.
func (o *Options) includes(node string) bool { return o.Only == nil || slices.Contains(o.Only, node) }
