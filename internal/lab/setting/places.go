package setting

import (
	"path/filepath"

	"orrery/internal/engine"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/place"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Places holds the places where an experiment measures.
type Places struct {
	Near map[string][]*place.Place // by setting, one for each copy
	Far  map[string]*place.Place   // by setting: the far end, as reached from there
	Bare *place.Bare
}

// HostInfo is what the host must provide to find its nodes.
type HostInfo struct {
	Engine func(name string) engine.Engine
	Tree   func(digest string) string // returns the directory of a layer
	Tools  map[string]string          // files of the host by the name of the tool
	Run    string                     // a directory that does not survive a reboot
}

// Places returns the places of a testbed whose site is running.
func (s *Testbed) Places(up *site.Site, here HostInfo) (*Places, error) {
	g := &Places{Near: map[string][]*place.Place{}, Far: map[string]*place.Place{}}
	nodes := map[string]*spec.Node{}
	maker := spec.NewBuilder(up)
	for i := range up.Nodes {
		spelt, err := maker.Node(&up.Nodes[i])
		if err != nil {
			return nil, err
		}
		nodes[spelt.Name] = spelt
	}
	far := nodes[FarEnd]
	g.Bare = &place.Bare{
		Root: filepath.Join(here.Run, "lab"), Scratch: filepath.Join(s.Work, "layer"), Layers: trees(far, here.Tree),
		Tools: here.Tools,
	}
	network, _ := up.Network(lan)
	for _, name := range []string{experiment.Bare, experiment.Control} {
		g.Far[name] = s.node(FarEnd, far, lan, here)
		for i := range s.maxCopies() {
			p := s.bare(g.Bare, name, i, network.Gateway, far)
			if g.Far[name].Cgroup != "" {
				beside := place.GroupedBare{Bare: g.Bare, Group: bareGroup(up.Key(), name, i)}
				p.Runner = beside
				beside.Alone = true
				p.Alone = beside
			}
			g.Near[name] = append(g.Near[name], p)
		}
	}
	for _, one := range s.settings {
		on := lan
		if !one.Bridged() {
			on = nodeName(one.Name)
		}
		g.Far[one.Name] = s.node(FarEnd, far, on, here)
		for _, name := range s.Nodes(one) {
			p := s.node(one.Name, nodes[name], on, here)
			p.Emulated = one.Emulated
			if one.Disk != "" {
				p.Dir = DiskPath
			}
			p.HostLinks = append(p.HostLinks, g.Far[one.Name].HostLinks...)
			g.Near[one.Name] = append(g.Near[one.Name], p)
		}
	}
	return g, nil
}

// trees returns the layers of a node, topmost first.
func trees(n *spec.Node, tree func(string) string) []string {
	var all []string
	for _, digest := range n.Layers() {
		all = append(all, tree(digest))
	}
	return all
}

func (s *Testbed) maxCopies() int {
	most := 1
	for _, t := range s.Experiment.Tests {
		for _, n := range t.Copies {
			most = max(most, n)
		}
	}
	return most
}

// node returns a node as a place, on the network of the far end.
func (s *Testbed) node(setting string, n *spec.Node, on string, here HostInfo) *place.Place {
	e, ref := here.Engine(n.Engine), engine.RefOf(n)
	p := &place.Place{Runner: e.Runner(ref), Name: setting, Node: n.Name, Dir: WorkPath + "/data", Root: "/"}
	if grouped, ok := e.(engine.CgroupProvider); ok {
		p.Cgroup = grouped.Cgroup(ref)
	}
	for _, nic := range n.NICs {
		if nic.Network != on {
			continue
		}
		p.Interface = nic.Name
		p.Address = nic.Address.Addr()
		for _, link := range []string{nic.HostIfName, nic.Bridge} {
			if link != "" {
				p.HostLinks = append(p.HostLinks, link)
			}
		}
	}
	return p
}
