package place

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// HostsByData returns the host of each node that may exist nowhere but has volumes on exactly one host:
// nodes that were taken down, and nodes of a twin that are yet to be made. If the volumes are on
// several hosts, it is unknown which one the node should be on. Drained hosts are left out.
func HostsByData(s *site.Site, hosts []observe.Host) map[string]string {
	own, shared := map[string][]string{}, map[string][]string{}
	for i := range hosts {
		for _, v := range hosts[i].Volumes {
			switch on := hosts[i].Name; {
			case hosts[i].Drained != nil:
			case v.Node == "":
				shared[v.Name] = append(shared[v.Name], on)
			case !slices.Contains(own[v.Node], on):
				own[v.Node] = append(own[v.Node], on)
			}
		}
	}
	for name, volumes := range SharedVolumes(s) {
		for _, v := range volumes {
			for _, on := range shared[v] {
				if !slices.Contains(own[name], on) {
					own[name] = append(own[name], on)
				}
			}
		}
	}
	all := map[string]string{}
	for i := range s.Nodes {
		if on := own[s.Nodes[i].Name]; len(on) == 1 {
			all[s.Nodes[i].Name] = on[0]
		}
	}
	return all
}
