// Package services reports which nodes hold the addresses of a site's services, moves them, and measures how
// long clients get no answer when a holder fails.
package services

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/status"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/observe/drill"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/service"
)

// A Service is the state of a service.
type Service struct {
	Name    string `json:"service"`
	Kind    string `json:"kind,omitempty"` // of an active service; "" for one whose address moves
	Address string `json:"address"`
	Network string `json:"network"`
	Nodes   []Node `json:"nodes"` // the preferred one first
	// Holders are the nodes that have the address: one, if all is well. Those of an active service are its running
	// nodes.
	Holders []string      `json:"holders"`
	Since   time.Time     `json:"since,omitzero"`  // when the only holder got it, by its clock
	Flaps   int           `json:"flaps"`           // of all nodes
	Drill   *drill.Result `json:"drill,omitempty"` // the last one that ended
}

// A Node is what a node says of a service.
type Node struct {
	Node string `json:"node"`
	// State is that of keepalived: MASTER, BACKUP or FAULT, or "" if it does not say.
	State string    `json:"state"`
	Has   bool      `json:"has"` // it has the address
	Since time.Time `json:"since,omitzero"`
	// Flaps is how often the node gave the address up to another one, although it was healthy, in the last
	// 24 hours and since its keepalived was started. Either of them took over without need, or they did not hear
	// each other for a while.
	Flaps int    `json:"flaps"`
	Error string `json:"error,omitempty"` // why it does not say more
}

// States of keepalived. A node is in FAULT if one of its roles is not healthy.
const (
	Master = "MASTER"
	Backup = "BACKUP"
	Fault  = "FAULT"
)

// askTimeout is how long a node may take to answer.
const askTimeout = 10 * time.Second

// List returns the state of the services of a site, as their nodes report it.
func List(ctx context.Context, c *control.Session, s *site.Site) ([]Service, error) {
	if err := c.CheckAllowedOn(s); err != nil {
		return nil, err
	}
	all := make([]Service, 0, len(s.Services)+len(s.Active))
	if len(s.Services)+len(s.Active) == 0 {
		return all, nil
	}
	f, _, err := c.ReachableHosts(ctx, s)
	if err != nil {
		return nil, err
	}
	runners, err := runnersOf(ctx, c, s)
	if err != nil {
		return nil, err
	}
	drills, err := status.Drills(ctx, s, f)
	if err != nil {
		c.Trouble(s.Key(), err)
	}
	for i := range s.Services {
		v := &s.Services[i]
		one := ask(ctx, runners, v)
		if k := slices.IndexFunc(drills, func(r drill.Result) bool { return r.Service == v.Name }); k >= 0 {
			one.Drill = &drills[k]
		}
		all = append(all, one)
	}
	for i := range s.Active {
		all = append(all, active(runners, s, &s.Active[i]))
	}
	return all, nil
}

// active returns the state of an active service.
func active(runners map[string]host.Runner, s *site.Site, a *service.Active) Service {
	one := Service{Name: a.Name, Kind: a.Kind, Network: a.Network, Nodes: []Node{}, Holders: []string{}}
	if on, ok := s.Network(a.Network); ok {
		one.Address = on.Gateway.String()
	}
	for _, name := range a.Nodes {
		n := Node{Node: name, Has: runners[name] != nil}
		if n.Has {
			one.Holders = append(one.Holders, name)
		} else {
			n.Error = "not running"
		}
		one.Nodes = append(one.Nodes, n)
	}
	return one
}

// Healthy reports whether one node has the address of a service, or all nodes of an active service run.
func (v *Service) Healthy() bool {
	if v.Kind != "" {
		return len(v.Holders) == len(v.Nodes)
	}
	return len(v.Holders) == 1
}

// runnersOf returns runners for the running nodes of a site.
func runnersOf(ctx context.Context, c *control.Session, s *site.Site) (map[string]host.Runner, error) {
	roll, err := way.NewDirectory(ctx, c, s)
	if err != nil {
		return nil, err
	}
	return roll.Runners()
}

// find returns a service of a site.
func find(s *site.Site, name string) (*service.Service, error) {
	if v, ok := s.Service(name); ok {
		return v, nil
	}
	if slices.ContainsFunc(s.Active, func(a service.Active) bool { return a.Name == name }) {
		return nil, problem.New(problem.Usage, "service %s does not move: each host answers it", name).At("site.toml").
			Try("orrery service ls lists the nodes that do")
	}
	var names []string
	for i := range s.Services {
		names = append(names, s.Services[i].Name)
	}
	if len(names) == 0 {
		return nil, problem.New(problem.Usage, "site %s has no services", s.Key()).At("site.toml").
			Try("declare one: [service.%s]", problem.Truncate(name, 63))
	}
	return nil, problem.New(problem.Usage, "no service is called %q", problem.Truncate(name, 200)).
		Try("%s", problem.SuggestOr(name, names, "orrery service ls lists them"))
}

// maxFlaps is how many flaps a node records.
const maxFlaps = 100

// askScript prints whether a node has an address ($1), whether keepalived runs, the flaps of the service ($2), and
// its state that keepalived has recorded.
const askScript = `if [ -n "$(ip -o -4 address show to "$1" 2>/dev/null)" ]; then echo has; else echo free; fi
if pidof keepalived >/dev/null; then echo active; else echo ended; fi
cat "/run/orrery-service/.$2.flaps" 2>/dev/null |
	awk -v from="$(($(date +%s) - 86400))" '$1 >= from { n++ } END { print n + 0 }'
cat "/run/orrery-service/$2" 2>/dev/null || true`

// ask asks all nodes of a service at once.
func ask(ctx context.Context, runners map[string]host.Runner, v *service.Service) Service {
	one := Service{Name: v.Name, Address: v.Address.String(), Network: v.Network, Nodes: make([]Node, len(v.Nodes)),
		Holders: []string{}}
	var all sync.WaitGroup
	for i, name := range v.Nodes {
		all.Go(func() { one.Nodes[i] = askNode(ctx, name, runners[name], v) })
	}
	all.Wait()
	for _, n := range one.Nodes {
		one.Flaps += n.Flaps
		if n.Has {
			one.Holders, one.Since = append(one.Holders, n.Node), n.Since
		}
	}
	if len(one.Holders) != 1 {
		one.Since = time.Time{}
	}
	return one
}

// askNode asks a node whether it has the address of a service.
func askNode(ctx context.Context, name string, in host.Runner, v *service.Service) Node {
	n := Node{Node: name}
	if in == nil {
		n.Error = "not running"
		return n
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	args := []string{"sh", "-c", askScript, "ask", v.Address.String(), v.Name}
	out, err := host.Output(ctx, in, host.Command{Args: args}, 4<<10)
	if err != nil {
		n.Error = "does not answer"
		return n
	}
	return parseNode(n, string(out))
}

// parseNode parses the output of the script, which a node may make up.
func parseNode(n Node, out string) Node {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	n.Has = lines[0] == "has"
	if len(lines) > 1 && lines[1] != "active" {
		n.Error = "keepalived is not running"
	}
	if len(lines) > 2 {
		if flaps, err := strconv.Atoi(lines[2]); err == nil {
			n.Flaps = min(max(flaps, 0), maxFlaps)
		}
	}
	if len(lines) < 4 {
		return n
	}
	state, at, _ := strings.Cut(lines[3], " ")
	if slices.Contains([]string{Master, Backup, Fault}, state) {
		n.State = state
	}
	if t, err := strconv.ParseInt(at, 10, 64); err == nil && t > 0 && t < 1<<40 {
		n.Since = time.Unix(t, 0)
	}
	return n
}

// holder returns the only node that has the address of a service.
func holder(now *Service) (string, error) {
	switch len(now.Holders) {
	case 1:
		return now.Holders[0], nil
	case 0:
		return "", problem.New(problem.Failed, "no node has the address %s of service %s", now.Address, now.Name).
			Because(why(now)).Try("orrery status --probe shows which nodes are not healthy")
	}
	return "", problem.New(problem.Failed, "nodes %s have the address %s of service %s",
		strings.Join(now.Holders, " and "), now.Address, now.Name).Try("orrery restart one of them")
}

// why returns what the nodes of a service say, as an error.
func why(now *Service) error {
	var all []string
	for _, n := range now.Nodes {
		all = append(all, n.Node+": "+cmp.Or(n.Error, n.State))
	}
	return errors.New(strings.Join(all, ", "))
}
