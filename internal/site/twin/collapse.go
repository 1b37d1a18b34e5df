package twin

import (
	"maps"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// collapse moves the roles of all nodes to the first node, which gets the other nodes' names as
// aliases.
func collapse(s *site.Site) error {
	if len(s.Nodes) < 2 {
		return nil
	}
	one := s.Nodes[0]
	one.Vars = maps.Clone(s.VarsOf(&one)) // before it is in the groups of the others
	one.Roles, one.Groups, one.StandsFor, one.NICs = slices.Clone(one.Roles), slices.Clone(one.Groups),
		slices.Clone(one.StandsFor), slices.Clone(one.NICs)
	for i := range s.Nodes[1:] {
		n := &s.Nodes[1+i]
		if err := mergeRequirements(&one, n); err != nil {
			return err
		}
		mergeNode(&one, n, s.VarsOf(n))
	}
	slices.Sort(one.Groups)
	s.Nodes = []site.Node{one}
	retargetGroups(s, one.Name)
	shareSecrets(s)
	return nil
}

// shareSecrets makes a secret readable for everyone on the collapsed node if its roles declare
// different owners or modes for it. A single mode is necessary because the secret is stored in one
// file.
func shareSecrets(s *site.Site) {
	uses, shared := map[string]site.SecretUse{}, map[string]bool{}
	for _, r := range s.RolesOf(&s.Nodes[0]) {
		for _, use := range r.Secrets {
			if other, known := uses[use.Name]; known && (other.Owner != use.Owner || other.Mode != use.Mode) {
				shared[use.Name] = true
			}
			uses[use.Name] = use
		}
	}
	if len(shared) == 0 {
		return
	}
	s.Roles = slices.Clone(s.Roles)
	for i := range s.Roles {
		r := &s.Roles[i]
		r.Secrets = slices.Clone(r.Secrets)
		for j := range r.Secrets {
			if use := &r.Secrets[j]; shared[use.Name] {
				use.Owner, use.Mode = "root:root", 0o444
			}
		}
	}
}

// mergeNode adds to the collapsed node everything that node n has and it lacks. Argument vars is the
// result of VarsOf for n.
func mergeNode(one, n *site.Node, vars map[string]any) {
	one.Aliases = append(one.Aliases, n.Name)
	one.Roles = union(one.Roles, n.Roles)
	one.StandsFor = union(one.StandsFor, n.StandsFor)
	one.Groups = union(one.Groups, n.Groups)
	one.Privileged = one.Privileged || n.Privileged && !one.Virtual()
	if !one.Virtual() {
		one.Syscalls = slices.Sorted(slices.Values(union(one.Syscalls, n.Syscalls)))
	}
	one.AuthorizedKeys = union(one.AuthorizedKeys, n.AuthorizedKeys)
	one.Autostart = one.Autostart || n.Autostart
	one.Limits = sumLimits(one.Limits, convertLimits(one, n))
	for _, nic := range n.NICs {
		i := slices.IndexFunc(one.NICs, func(mine site.NIC) bool { return mine.Network == nic.Network })
		if i < 0 {
			one.NICs = append(one.NICs, nic)
			continue
		}
		mine := &one.NICs[i]
		for _, a := range nic.Moving {
			if !slices.Contains(mine.Moving, a) {
				mine.Moving = append(slices.Clip(mine.Moving), a)
			}
		}
	}
	for name, value := range vars {
		if _, ok := one.Vars[name]; ok {
			continue
		}
		if one.Vars == nil {
			one.Vars = map[string]any{}
		}
		one.Vars[name] = value
	}
}

// mergeRequirements checks that the collapsed node can have the Python packages of node n, because a node has
// only one Python environment.
func mergeRequirements(one, n *site.Node) error {
	switch {
	case n.Requirements.Text == "" || n.Requirements.Text == one.Requirements.Text:
	case one.Requirements.Text == "":
		one.Requirements = n.Requirements
	default:
		return problem.New(problem.Mistake,
			"node %s needs the Python packages of %s but node %s or an earlier one those of %s: they cannot become one node",
			n.Name, n.Requirements.File, one.Name, one.Requirements.File).
			Try("choose nodes with --only, or with --release a release that has the same requirements for all nodes")
	}
	return nil
}

func union(to, from []string) []string {
	for _, x := range from {
		if !slices.Contains(to, x) {
			to = append(to, x)
		}
	}
	return to
}

// convertLimits returns the limits of node n converted to the engine of node one. A virtual machine has its
// own memory and no limits for swap and processes. A container has such limits.
func convertLimits(one, n *site.Node) site.Limits {
	l := n.Limits
	switch {
	case one.Virtual() && !n.Virtual():
		l.Swap, l.Pids = nil, 0
		if l.Memory == 0 {
			l.Memory = site.DefaultVMMemory
		}
	case n.Virtual() && !one.Virtual():
		l.Pids = site.DefaultPids
	}
	return l
}

// sumLimits returns the sum of the limits of two nodes. Where one has no limit, the sum has none.
func sumLimits(a, b site.Limits) site.Limits {
	both := site.Limits{}
	if a.Cpus > 0 && b.Cpus > 0 {
		both.Cpus = a.Cpus + b.Cpus
	}
	if a.Memory > 0 && b.Memory > 0 {
		both.Memory = a.Memory + b.Memory
	}
	if a.Pids > 0 && b.Pids > 0 {
		both.Pids = min(a.Pids+b.Pids, site.MaxPids)
	}
	if a.Swap != nil && b.Swap != nil && both.Memory > 0 {
		swap := *a.Swap + *b.Swap
		both.Swap = &swap
	}
	return both
}

// retargetGroups assigns the groups, services and tests of all nodes to the collapsed node.
func retargetGroups(s *site.Site, name string) {
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		if g := &s.Groups[i]; len(g.Nodes) > 0 {
			g.Nodes = []string{name}
		}
	}
	s.Services = slices.Clone(s.Services)
	for i := range s.Services {
		s.Services[i].Nodes = []string{name}
	}
	s.Active = nil // the only node asks itself
	s.Tests = slices.Clone(s.Tests)
	for i := range s.Tests {
		s.Tests[i].Node = name
	}
}
