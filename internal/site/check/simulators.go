package check

import "orrery/internal/site"

// checkSimulators checks the roles that simulate nodes and roles in twins, and that only twins use
// them.
func checkSimulators(ix *index, found *findings) {
	simulators := map[string]bool{}
	for n := range each(ix.Nodes) {
		if n.SimulatedBy != "" {
			checkSimulator(ix, found, atNode(n, "simulated_by"), "node "+n.Name, n.SimulatedBy)
			simulators[n.SimulatedBy] = true
		}
	}
	for r := range each(ix.Roles) {
		if r.SimulatedBy == "" {
			continue
		}
		key := at("role", r.Name, "simulated_by")
		if r.SimulatedBy == r.Name {
			found.report(key, "write a role that simulates it without the outside world",
				"role %s is simulated by itself",
				r.Name)
			continue
		}
		checkSimulator(ix, found, key, "role "+r.Name, r.SimulatedBy)
		simulators[r.SimulatedBy] = true
	}
	if ix.Production && ix.Twin == "" && len(simulators) > 0 {
		checkOnlyInTwins(ix, found, simulators)
	}
}

func checkSimulator(ix *index, found *findings, key []string, what, name string) {
	r := ix.roleByName[name]
	switch {
	case r == nil:
		addUnknownRole(ix, found, key, name)
	case r.SimulatedBy != "" && r.SimulatedBy != name:
		found.report(key, "name the role that a twin uses",
			"%s is simulated by role %s, which is itself simulated by %s", what, name, r.SimulatedBy)
	}
}

// checkOnlyInTwins reports production nodes that have a simulator, even if only because a role
// needs it.
func checkOnlyInTwins(ix *index, found *findings, simulators map[string]bool) {
	const cure = "use the role that it simulates: simulators run only in twins"
	for n := range each(ix.Nodes) {
		for k, name := range n.Roles {
			if simulators[name] {
				found.report(atNode(n, "roles", k), cure, "node %s of a production site has the simulator %s", n.Name, name)
			}
		}
		for _, r := range ix.rolesOf(n.Roles) {
			checkNeedsNoSimulator(found, r, simulators, cure)
		}
	}
}

func checkNeedsNoSimulator(found *findings, r *site.Role, simulators map[string]bool, cure string) {
	if simulators[r.Name] {
		return
	}
	for k, name := range r.NeedsRoles {
		if simulators[name] {
			found.report(at("role", r.Name, "needs", "roles", k), cure,
				"role %s needs the simulator %s and is used on a production site", r.Name, name)
		}
	}
}
