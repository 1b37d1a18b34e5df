package sitefile

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
	"orrery/internal/site/service"
	"orrery/internal/strict"
)

// A serviceReader reads the services of a site.
type serviceReader struct {
	*loader
	nodes  *selector.View
	looked int // number of nodes compared, see maxComparisons
}

// maxServices limits the services of a site, because each is a part of the names that all nodes know.
const maxServices = 1000

// readServices sets the services of the site, and gives their nodes addresses and role. It reports whether there are
// any. The model contains only the names of nodes, so mistakes in selectors are reported here.
func readServices(l *loader) bool {
	r := &serviceReader{loader: l, nodes: selector.NewView(l.site)}
	for i, t := range l.file.Services {
		if i == maxServices {
			l.report.addAt(Name, t.At, mistake("the site has more than %d services", maxServices).Try("make several sites"))
			break
		}
		if t.At.Keys["active"] != nil {
			r.readActive(t)
			continue
		}
		v := t.Value.Service
		v.Nodes = r.nodesOf(t)
		if v.Network == "" {
			v.Network = r.networkOf(t)
		}
		l.site.Services = append(l.site.Services, v)
	}
	l.site.AddServices()
	return len(l.site.Services)+len(l.site.Active) > 0
}

// readActive adds an active service. The network may be left out if only one has a gateway.
func (r *serviceReader) readActive(t strict.Named[serviceDeclaration]) {
	a := service.Active{Name: t.Name, Kind: t.Value.Active, Network: t.Value.Network, Nodes: r.nodesOf(t)}
	for _, key := range []string{"address", "takeover", "advertise"} {
		if at := t.At.Keys[key]; at != nil {
			r.report.addAt(Name, at, mistake("service %s: %s is for services whose address moves", t.Name, key).
				Try("remove it: an active service answers at the gateway's address"))
		}
	}
	if t.At.Keys["network"] == nil {
		a.Network = r.onlyGateway(t)
	}
	r.site.Active = append(r.site.Active, a)
}

// onlyGateway returns the only network with a gateway, or "".
func (r *serviceReader) onlyGateway(t strict.Named[serviceDeclaration]) string {
	var all []string
	for _, n := range r.site.Networks {
		if n.Gateway.IsValid() {
			all = append(all, n.Name)
		}
	}
	switch len(all) {
	case 1:
		return all[0]
	case 0:
		r.report.addAt(Name, t.At, mistake("service %s: no network has a gateway", t.Name).
			Try(`give one a gateway: gateway = "10.8.67.1"`))
	default:
		r.report.addAt(Name, t.At, mistake("service %s: networks %s have a gateway", t.Name,
			strings.Join(all[:2], " and ")).Try("write network = %q, or another", all[0]))
	}
	return ""
}

// networkOf returns the only network with the address of a service, or "".
func (r *serviceReader) networkOf(t strict.Named[serviceDeclaration]) string {
	a := t.Value.Address
	if !a.IsValid() {
		return "" // package check reports that
	}
	var all []string
	for _, n := range r.site.Networks {
		if n.Subnet.IsValid() && n.Subnet.Contains(a) {
			all = append(all, n.Name)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	at := t.At.Keys["address"]
	if len(all) > 1 {
		r.report.addAt(Name, at, mistake("service %s: networks %s have the address %s", t.Name,
			strings.Join(all, " and "), a).Try("write network = %q, or the other", all[0]))
	} else {
		r.report.addAt(Name, at, mistake("service %s: no network has the address %s", t.Name, a).
			Try("choose a free address of the network of its nodes"))
	}
	return ""
}

// nodesOf returns the names of the nodes of a service, in the order in which the entries select them.
func (r *serviceReader) nodesOf(t strict.Named[serviceDeclaration]) (names []string) {
	for i, entry := range t.Value.Nodes {
		at, _ := t.At.Find("nodes", strconv.Itoa(i))
		texts, p := braces(entry)
		if p != nil {
			r.report.addAt(Name, at, p)
			continue
		}
		for _, text := range texts {
			if r.looked += len(r.site.Nodes); r.looked > maxComparisons {
				r.report.addAt(Name, at, mistake("the services take too long to evaluate").Try("use fewer services"))
				return names
			}
			nodes, err := selectNodes(r.nodes, text)
			if err != nil {
				var p *problem.Problem
				if !errors.As(err, &p) {
					p = problem.New(problem.Mistake, "%v", err)
				}
				r.report.addAt(Name, at, mistake("service %s: %s", t.Name, p.What).Try("%s", p.Cure))
				break
			}
			for _, n := range nodes {
				if !slices.Contains(names, n.Name) {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// selectNodes returns the nodes that a selector selects.
func selectNodes(nodes *selector.View, text string) ([]*site.Node, error) {
	q, err := selector.Parse(text)
	if err == nil {
		err = nodes.Check(q)
	}
	if err != nil {
		return nil, err
	}
	return nodes.Select(q), nil
}

// maxBraces limits the names of an entry with braces.
const maxBraces = 64

// braces expands the braces of an entry: "a{1..3}" as in names of nodes, and "a{x,y}" to ax and ay.
func braces(entry string) ([]string, *problem.Problem) {
	head, rest, open := strings.Cut(entry, "{")
	list, tail, closed := strings.Cut(rest, "}")
	if !open || strings.Contains(list, "..") {
		all, p := expand(entry, maxBraces)
		if p != nil {
			return nil, mistake("%q is not a range of at most %d nodes", entry, maxBraces).Try("write %q", "portal{1..3}")
		}
		return all, nil
	}
	if !closed || strings.ContainsAny(head+list+tail, "{}") {
		return nil, mistake("%q is not a list of names", entry).Try(`write "portal{a,b}" or "portal{1..3}"`)
	}
	var all []string
	if strings.Count(list, ",") >= maxBraces {
		return nil, mistake("%q has more than %d names", entry, maxBraces).Try("choose fewer")
	}
	for word := range strings.SplitSeq(list, ",") {
		all = append(all, head+word+tail)
	}
	return all, nil
}
